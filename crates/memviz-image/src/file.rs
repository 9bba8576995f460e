//! A file's memory image, laid out and relocated as if loaded at bias 0.

use object::elf::{self, FileHeader64};
use object::read::elf::{FileHeader as _, ProgramHeader as _};
use object::{LittleEndian, ReadRef as _};

use crate::error::ImageError;
use crate::machine::Machine;
use crate::memory::{ReadMemory, Unreadable};
use crate::relocations::DynamicTables;

/// A file laid out by its `PT_LOAD` headers, with the relocations applied that need no other image.
///
/// For tests and tools that look at files: what vtables and tables of functions hold after loading can be read from it.
/// Words that hold a symbol of another image keep what the file has there (usually 0).
///
/// `segments` is sorted by address and does not overlap; `relocated` is sorted by address, one value for each.
#[derive(Clone, Debug)]
pub struct FileImage<'a> {
    machine: Machine,
    segments: Vec<Segment<'a>>,
    dynamic_addr: Option<u64>,
    relocated: Vec<(u64, u64)>,
}

/// Bytes from the file, then zeros up to `size_bytes`. `addr + size_bytes` does not overflow.
#[derive(Clone, Debug)]
struct Segment<'a> {
    addr: u64,
    size_bytes: u64,
    bytes: &'a [u8],
    is_code: bool,
}

impl<'a> FileImage<'a> {
    /// Lays out an executable or shared object. Fails if its headers, segments or relocations cannot be read.
    pub fn new(bytes: &'a [u8]) -> Result<FileImage<'a>, ImageError> {
        let parse = |what| move |source| ImageError::Parse { what, source };
        let header = FileHeader64::<LittleEndian>::parse(bytes).map_err(parse("the header"))?;
        let endian = header.endian().map_err(parse("the header"))?;
        let machine = Machine::from_elf(header.e_machine(endian).0)?;
        let headers = header.program_headers(endian, bytes).map_err(parse("the table of program headers"))?;
        let loads = headers.iter().filter(|header| header.p_type(endian) == elf::PT_LOAD);
        let segments = loads.map(|load| Segment::new(load, bytes)).collect::<Result<Vec<_>, _>>()?;
        let dynamic = headers.iter().find(|header| header.p_type(endian) == elf::PT_DYNAMIC);
        let dynamic_addr = dynamic.map(|header| header.p_vaddr(endian));
        let mut image = FileImage { machine, segments: sorted(segments)?, dynamic_addr, relocated: Vec::new() };
        image.relocated = image.relocations()?;
        Ok(image)
    }

    /// Address of `PT_DYNAMIC`; `None` for a static executable.
    pub fn dynamic_addr(&self) -> Option<u64> {
        self.dynamic_addr
    }

    /// The processor that the file is for.
    pub fn machine(&self) -> Machine {
        self.machine
    }

    /// Whether `addr` lies in an executable segment.
    pub fn is_code(&self, addr: u64) -> bool {
        self.segment(addr).is_some_and(|segment| segment.is_code)
    }

    /// Words that loading fills with an address in this image, and what it fills in.
    fn relocations(&self) -> Result<Vec<(u64, u64)>, ImageError> {
        let Some(dynamic_addr) = self.dynamic_addr else { return Ok(Vec::new()) };
        let tables = DynamicTables::read(self, 0, dynamic_addr, self.machine)?;
        let found = tables.relocations(self, true)?;
        let mut words = found.relative;
        if let Some(last_index) = found.symbols.iter().map(|relocation| relocation.symbol_index).max() {
            let symbols = tables.symbols(self, last_index)?;
            words.extend(found.symbols.iter().filter_map(|relocation| {
                let value = symbols[relocation.symbol_index as usize].value?;
                Some((relocation.addr, value.wrapping_add_signed(relocation.addend)))
            }));
        }
        words.sort_by_key(|&(addr, _)| addr);
        words.dedup_by_key(|(addr, _)| *addr);
        Ok(words)
    }

    fn segment(&self, addr: u64) -> Option<&Segment<'a>> {
        let after = self.segments.partition_point(|segment| segment.addr <= addr);
        self.segments[..after].last().filter(|segment| addr - segment.addr < segment.size_bytes)
    }

    /// Bytes from the file and zeros, unrelocated. `None` if a byte is in no segment.
    fn lay_out(&self, addr: u64, into: &mut [u8]) -> Option<()> {
        let mut done = 0;
        while done < into.len() {
            let at = addr.checked_add(done as u64)?;
            let segment = self.segment(at)?;
            done += segment.copy(at, &mut into[done..]);
        }
        Some(())
    }

    /// Puts the part of each relocated word that lies in the range over the bytes there.
    fn relocate(&self, addr: u64, into: &mut [u8]) {
        let end = addr + into.len() as u64;
        let first = self.relocated.partition_point(|&(word_addr, _)| word_addr.saturating_add(8) <= addr);
        for (word_addr, value) in self.relocated[first..].iter().take_while(|(word_addr, _)| *word_addr < end) {
            for (byte_addr, byte) in (*word_addr..).zip(value.to_le_bytes()) {
                if (addr..end).contains(&byte_addr) {
                    into[(byte_addr - addr) as usize] = byte;
                }
            }
        }
    }
}

impl ReadMemory for FileImage<'_> {
    fn read(&self, addr: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        self.lay_out(addr, into).ok_or(Unreadable { addr, len: into.len() })?;
        self.relocate(addr, into);
        Ok(())
    }
}

impl<'a> Segment<'a> {
    fn new(header: &elf::ProgramHeader64<LittleEndian>, file: &'a [u8]) -> Result<Segment<'a>, ImageError> {
        let endian = LittleEndian;
        let (offset, file_bytes) = header.file_range(endian);
        let (addr, size_bytes) = (header.p_vaddr(endian), header.p_memsz(endian));
        if addr.checked_add(size_bytes).is_none() {
            return Err(ImageError::OutOfAddressSpace { what: "a segment", base: addr, offset: size_bytes });
        }
        let outside = ImageError::Unreadable {
            what: "a segment's part of the file",
            source: Unreadable { addr: offset, len: usize::try_from(file_bytes).unwrap_or(usize::MAX) },
        };
        let bytes = file.read_bytes_at(offset, file_bytes.min(size_bytes)).map_err(|()| outside)?;
        Ok(Segment { addr, size_bytes, bytes, is_code: header.p_flags(endian).contains(elf::PF_X) })
    }

    /// As many bytes from `addr` on as there are and fit; `addr` is inside.
    fn copy(&self, addr: u64, into: &mut [u8]) -> usize {
        let skipped = addr - self.addr;
        let len = (self.size_bytes - skipped).min(into.len() as u64) as usize;
        let from_file = usize::try_from(skipped).ok().and_then(|skipped| self.bytes.get(skipped..)).unwrap_or(&[]);
        let copied = from_file.len().min(len);
        into[..copied].copy_from_slice(&from_file[..copied]);
        into[copied..len].fill(0);
        len
    }
}

fn sorted(mut segments: Vec<Segment<'_>>) -> Result<Vec<Segment<'_>>, ImageError> {
    segments.retain(|segment| segment.size_bytes > 0);
    segments.sort_by_key(|segment| segment.addr);
    for pair in segments.windows(2) {
        if pair[0].addr + pair[0].size_bytes > pair[1].addr {
            return Err(ImageError::OverlappingSegments { first_addr: pair[0].addr, second_addr: pair[1].addr });
        }
    }
    Ok(segments)
}
