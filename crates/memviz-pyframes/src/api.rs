//! The functions of the running interpreter, found by `dlsym`, so that no Python header or library is needed to build.
//!
//! The extension is loaded into a process that already has Python in it; the symbols come from the executable or from
//! libpython, whichever holds them. Several are not in the limited API, which is why PyO3's abi3 does not offer them.
#![expect(unsafe_code, reason = "function pointers come from dlsym and are called across the C ABI")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

use crate::InitError;

/// A `PyObject *`, `PyFrameObject *` or `PyCodeObject *`; 0 is NULL. An integer, because most are only compared.
pub(crate) type Address = usize;

/// Address of a symbol anywhere in the process.
pub(crate) fn symbol(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: `name` is NUL-terminated; RTLD_DEFAULT needs no handle.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

macro_rules! python_functions {
    (required { $($name:ident: fn($($arg:ty),*) -> $ret:ty;)* } optional { $($opt:ident: fn($($oarg:ty),*) -> $oret:ty;)* }) => {
        /// Python's functions by their own names.
        #[expect(non_snake_case, reason = "the names are CPython's")]
        pub(crate) struct Api {
            $(pub(crate) $name: unsafe extern "C" fn($($arg),*) -> $ret,)*
            $(pub(crate) $opt: Option<unsafe extern "C" fn($($oarg),*) -> $oret>,)*
            /// Address of `PyCode_Type`.
            pub(crate) code_type: Address,
        }

        impl Api {
            fn load() -> Result<Api, InitError> {
                Ok(Api {
                    $($name: {
                        let missing = InitError::MissingSymbol { symbol: stringify!($name) };
                        let found = symbol(literal(concat!(stringify!($name), "\0"))).ok_or(missing)?;
                        // SAFETY: CPython documents this signature under this name; the type above repeats it.
                        unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($arg),*) -> $ret>(found) }
                    },)*
                    $($opt: symbol(literal(concat!(stringify!($opt), "\0"))).map(|found| {
                        // SAFETY: as above.
                        unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($oarg),*) -> $oret>(found) }
                    }),)*
                    code_type: symbol(c"PyCode_Type").ok_or(InitError::MissingSymbol { symbol: "PyCode_Type" })? as Address,
                })
            }
        }
    };
}

python_functions! {
    required {
        PyInterpreterState_Get: fn() -> Address;
        PyInterpreterState_Main: fn() -> Address;
        PyThreadState_GetInterpreter: fn(Address) -> Address;
        PyEval_GetFrame: fn() -> Address;
        PyFrame_GetBack: fn(Address) -> Address;
        PyFrame_GetCode: fn(Address) -> Address;
        PyGC_Disable: fn() -> c_int;
        PyGC_Enable: fn() -> c_int;
        Py_IncRef: fn(Address) -> ();
        Py_DecRef: fn(Address) -> ();
        PyCode_Addr2Line: fn(Address, c_int) -> c_int;
        PyErr_Fetch: fn(*mut Address, *mut Address, *mut Address) -> ();
        PyErr_Restore: fn(Address, Address, Address) -> ();
        PyErr_Clear: fn() -> ();
        PyObject_GetAttrString: fn(Address, *const c_char) -> Address;
        PyObject_CallObject: fn(Address, Address) -> Address;
        PyIter_Next: fn(Address) -> Address;
        PyTuple_GetItem: fn(Address, isize) -> Address;
        PyLong_AsLong: fn(Address) -> i64;
        PyUnicode_AsEncodedString: fn(Address, *const c_char, *const c_char) -> Address;
        PyBytes_AsStringAndSize: fn(Address, *mut *mut c_char, *mut isize) -> c_int;
    }
    optional {
        PyFrame_GetLasti: fn(Address) -> c_int;
        Py_IsFinalizing: fn() -> c_int;
        _Py_IsFinalizing: fn() -> c_int;
    }
}

/// Turns a literal that the macro ended with a NUL into a C string.
fn literal(text: &'static str) -> &'static CStr {
    CStr::from_bytes_with_nul(text.as_bytes()).unwrap_or(c"")
}

static API: OnceLock<Api> = OnceLock::new();

impl Api {
    /// Finds every function, once.
    pub(crate) fn initialise() -> Result<&'static Api, InitError> {
        match API.get() {
            Some(api) => Ok(api),
            None => Api::load().map(|api| API.get_or_init(|| api)),
        }
    }

    /// The functions, if [`Api::initialise`] found them.
    pub(crate) fn get() -> Option<&'static Api> {
        API.get()
    }

    /// The interpreter is being torn down (`_Py_IsFinalizing` before 3.13). Reads one atomic; needs no GIL.
    pub(crate) fn is_finalizing(&self) -> bool {
        let function = self.Py_IsFinalizing.or(self._Py_IsFinalizing);
        // SAFETY: documented to be callable at any time, even without a thread state.
        function.is_some_and(|is_finalizing| unsafe { is_finalizing() } != 0)
    }
}
