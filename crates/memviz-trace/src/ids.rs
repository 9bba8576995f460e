//! Ids: small integers into the tables of one trace. Id 0 means "none" wherever a table has a none.

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(transparent)]
        pub struct $name(pub $inner);

        impl $name {
            /// Position in its table.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id!(
    /// A stack in a [`crate::StackTable`]: its innermost node. 0 is the empty stack.
    StackId(u32)
);
id!(
    /// A frame (file, function, line) in a [`crate::StackTable`].
    FrameId(u32)
);
id!(
    /// An interned string. 0 is the empty string.
    StringId(u32)
);
id!(
    /// What an allocation is for: primitive, shape and dtype. 0 is "not known".
    WhatId(u32)
);
id!(
    /// A thread of the recorded process. 0 is "not known".
    ThreadId(u16)
);
