//! Pointer tables, symbols and vtables of loaded ELF images, read from bytes.
//!
//! Answers three questions: through which slots does this image call `symbol` ([`LoadedImage`]), where is `symbol` and
//! what is at this address ([`SymbolTable`]), and which functions are in this vtable ([`vtable_entries`]). Memory comes in
//! through [`ReadMemory`], so the same code runs on a live process, on a file ([`FileImage`]) and on a byte array in a test.
//!
//! 64-bit little endian, x86_64 and aarch64. Every count, size, index and address read from an image is taken for hostile:
//! it is compared with a limit or with the table it points into before use, so a damaged image gives an [`ImageError`],
//! never a panic, a hang or an allocation without bound. Tables are only held as long as a call runs.
//!
//! Not here: finding the images of a process, writing to slots, deciding which functions to hook (`memviz-agent`).
//!
//! ```
//! use memviz_image::{FileImage, LoadedImage, SymbolTable};
//!
//! # if !cfg!(target_os = "linux") { return Ok(()); }
//! // This test's own executable, as a file.
//! let bytes = std::fs::read(std::env::current_exe()?)?;
//! let file = FileImage::new(&bytes)?;
//! let dynamic_addr = file.dynamic_addr().ok_or("statically linked")?;
//!
//! let image = LoadedImage::from_dynamic(&file, 0, dynamic_addr, file.machine())?;
//! let slots = image.slots(&file, &|symbol| symbol == "write")?;
//! assert!(slots.iter().all(|slot| slot.addr.0 % 8 == 0 && slot.symbol == "write"));
//!
//! let symbols = SymbolTable::from_file(&bytes, &|symbol| symbol == "main")?;
//! let main = symbols.address_of("main", 0).ok_or("stripped")?;
//! assert_eq!(symbols.name_at(main, 0), Some("main"));
//! assert!(file.is_code(main));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod file;
mod loaded;
mod machine;
mod memory;
mod names;
mod relocations;
mod symbols;
mod vtable;

pub use error::ImageError;
pub use file::FileImage;
pub use loaded::{LoadedImage, Slot, SlotAddr};
pub use machine::{Machine, SlotKind};
pub use memory::{ReadMemory, Unreadable};
pub use symbols::SymbolTable;
pub use vtable::vtable_entries;
