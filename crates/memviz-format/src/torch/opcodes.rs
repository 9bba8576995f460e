//! Opcodes of pickle that hold plain data, by Python's names (`Lib/pickle.py`), and those that run code.

macro_rules! opcodes {
    ($($name:ident = $byte:literal,)*) => {
        $(pub(super) const $name: u8 = $byte;)*

        const fn is_plain(opcode: u8) -> bool {
            matches!(opcode, $($name)|*)
        }

        /// Python's name of an opcode, or "an unknown opcode".
        pub(super) fn name(opcode: u8) -> &'static str {
            match opcode { $($name => stringify!($name),)* _ => code_name(opcode).unwrap_or("an unknown opcode") }
        }
    };
}

opcodes! {
    PROTO = 0x80, FRAME = 0x95, STOP = b'.', MARK = b'(', POP = b'0', POP_MARK = b'1', DUP = b'2',
    NONE = b'N', NEWTRUE = 0x88, NEWFALSE = 0x89,
    BININT = b'J', BININT1 = b'K', BININT2 = b'M', LONG1 = 0x8a, LONG4 = 0x8b, BINFLOAT = b'G',
    SHORT_BINUNICODE = 0x8c, BINUNICODE = b'X', BINUNICODE8 = 0x8d,
    EMPTY_DICT = b'}', EMPTY_LIST = b']', EMPTY_TUPLE = b')',
    APPEND = b'a', APPENDS = b'e', SETITEM = b's', SETITEMS = b'u',
    LIST = b'l', DICT = b'd', TUPLE = b't', TUPLE1 = 0x85, TUPLE2 = 0x86, TUPLE3 = 0x87,
    MEMOIZE = 0x94, BINPUT = b'q', LONG_BINPUT = b'r', BINGET = b'h', LONG_BINGET = b'j',
}

/// What follows an opcode.
#[derive(Clone, Copy)]
pub(super) enum Argument {
    /// That many bytes.
    Bytes(u8),
    /// A length of that many bytes, and then as many bytes as it says.
    Length(u8),
    /// The end of the pickle, or not plain data.
    Refused,
}

/// By opcode.
pub(super) const ARGUMENTS: [Argument; 256] = {
    let mut table = [Argument::Refused; 256];
    let mut at = 0;
    while at < table.len() {
        let opcode = at as u8;
        table[at] = match opcode {
            STOP => Argument::Refused,
            PROTO | BININT1 | BINGET | BINPUT => Argument::Bytes(1),
            BININT2 => Argument::Bytes(2),
            BININT | LONG_BINGET | LONG_BINPUT => Argument::Bytes(4),
            BINFLOAT | FRAME => Argument::Bytes(8),
            SHORT_BINUNICODE | LONG1 => Argument::Length(1),
            BINUNICODE | LONG4 => Argument::Length(4),
            BINUNICODE8 => Argument::Length(8),
            _ if is_plain(opcode) => Argument::Bytes(0),
            _ => Argument::Refused,
        };
        at += 1;
    }
    table
};

/// Name of an opcode that imports, calls or builds objects.
pub(super) fn code_name(opcode: u8) -> Option<&'static str> {
    Some(match opcode {
        b'c' => "GLOBAL",
        0x93 => "STACK_GLOBAL",
        b'R' => "REDUCE",
        b'b' => "BUILD",
        b'i' => "INST",
        b'o' => "OBJ",
        0x81 => "NEWOBJ",
        0x92 => "NEWOBJ_EX",
        b'P' => "PERSID",
        b'Q' => "BINPERSID",
        0x82 => "EXT1",
        0x83 => "EXT2",
        0x84 => "EXT4",
        _ => return None,
    })
}
