//! What differs between processors: the numbers of the relocation kinds.
//!
//! Numbers from the psABI documents: System V AMD64 table 4.10, ELF for the Arm 64-bit architecture section 5.7.

use crate::error::ImageError;

/// Processors with a table of relocation kinds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Machine {
    /// x86_64, little endian, 64-bit pointers.
    X86_64,
    /// aarch64, little endian, 64-bit pointers.
    Aarch64,
}

/// How the dynamic linker fills a slot.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum SlotKind {
    /// Called through the PLT; bound at the first call unless the image asks for binding at load.
    JumpSlot,
    /// Pointer in the GOT; bound at load.
    GlobDat,
    /// Pointer in data (tables of functions, vtables); bound at load.
    Absolute,
}

/// What a relocation does, as far as this crate has a use for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    /// Store a symbol's address.
    Symbol(SlotKind),
    /// Store `bias + addend`.
    Relative,
    /// Anything else.
    Other,
}

impl Machine {
    /// The machine that this code runs on; `None` if there is no table for it.
    pub fn host() -> Option<Machine> {
        if cfg!(all(target_arch = "x86_64", target_pointer_width = "64")) {
            Some(Machine::X86_64)
        } else if cfg!(all(target_arch = "aarch64", target_pointer_width = "64", target_endian = "little")) {
            Some(Machine::Aarch64)
        } else {
            None
        }
    }

    pub(crate) fn from_elf(e_machine: u16) -> Result<Machine, ImageError> {
        match e_machine {
            62 => Ok(Machine::X86_64),
            183 => Ok(Machine::Aarch64),
            found => Err(ImageError::UnknownMachine { found }),
        }
    }

    pub(crate) fn action(self, relocation_kind: u32) -> Action {
        match (self, relocation_kind) {
            (Machine::X86_64, 7) | (Machine::Aarch64, 1026) => Action::Symbol(SlotKind::JumpSlot),
            (Machine::X86_64, 6) | (Machine::Aarch64, 1025) => Action::Symbol(SlotKind::GlobDat),
            (Machine::X86_64, 1) | (Machine::Aarch64, 257) => Action::Symbol(SlotKind::Absolute),
            (Machine::X86_64, 8) | (Machine::Aarch64, 1027) => Action::Relative,
            _ => Action::Other,
        }
    }

    /// The addend that counts: x86_64 defines jump slots and GOT entries as the bare symbol.
    pub(crate) fn addend(self, kind: SlotKind, addend: i64) -> i64 {
        match (self, kind) {
            (Machine::X86_64, SlotKind::JumpSlot | SlotKind::GlobDat) => 0,
            _ => addend,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_machine_is_named() {
        let error = Machine::from_elf(243).unwrap_err();
        assert_eq!(
            error.to_string(),
            "processor number 243 (e_machine) is not supported (have 62 x86_64, 183 aarch64)"
        );
    }

    #[test]
    fn the_numbers_of_one_machine_mean_nothing_on_the_other() {
        for kind in [1, 6, 7, 8] {
            assert_ne!(Machine::X86_64.action(kind), Action::Other);
            assert_eq!(Machine::Aarch64.action(kind), Action::Other);
        }
        for kind in [257, 1025, 1026, 1027] {
            assert_ne!(Machine::Aarch64.action(kind), Action::Other);
            assert_eq!(Machine::X86_64.action(kind), Action::Other);
        }
    }
}
