//! Names in string tables, with a bound on each and on all together.

use std::ffi::CStr;

use crate::error::ImageError;

/// Longest name that is given out: the longest in MLX's CUDA library has 3,321 bytes. No longer one is asked for, so it is
/// left out instead of refusing the image.
const MAX_NAME_BYTES: usize = 4096;

/// Bytes of names looked at in one call. A table in which every symbol points to the same long string would otherwise cost
/// thousands of times its own size. MLX's CUDA library, the largest, has 23 MB of them.
const MAX_TOTAL_BYTES: u64 = 256 << 20;

/// A string table, and how much of it may still be looked at.
pub(crate) struct Names<'a> {
    bytes: &'a [u8],
    total_bytes: u64,
}

impl<'a> Names<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Names<'a> {
        Names { bytes, total_bytes: 0 }
    }

    /// The name at `offset`; `None` if it is empty, longer than [`MAX_NAME_BYTES`] or not UTF-8.
    pub(crate) fn get(&mut self, offset: u32) -> Result<Option<&'a str>, ImageError> {
        let out_of_range = ImageError::NameOutOfRange { offset, size_bytes: self.bytes.len() };
        let rest = self.bytes.get(offset as usize..).filter(|rest| !rest.is_empty()).ok_or(out_of_range)?;
        let window = &rest[..rest.len().min(MAX_NAME_BYTES + 1)];
        let name = CStr::from_bytes_until_nul(window);
        self.spend(name.as_ref().map_or(window.len(), |name| name.count_bytes()) as u64 + 1)?;
        match name {
            Ok(name) => Ok(name.to_str().ok().filter(|name| !name.is_empty())),
            Err(_) if window.len() < rest.len() => Ok(None),
            Err(_) => Err(ImageError::NameWithoutEnd { offset }),
        }
    }

    fn spend(&mut self, bytes: u64) -> Result<(), ImageError> {
        self.total_bytes += bytes;
        if self.total_bytes > MAX_TOTAL_BYTES {
            let (found, limit) = (self.total_bytes, MAX_TOTAL_BYTES);
            return Err(ImageError::TooBig { what: "bytes of symbol names", found, limit });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_end_at_a_zero_byte() {
        let mut names = Names::new(b"\0init\0\xff\xfe\0eval");
        assert_eq!(names.get(0), Ok(None));
        assert_eq!(names.get(1), Ok(Some("init")));
        assert_eq!(names.get(3), Ok(Some("it")));
        assert_eq!(names.get(6), Ok(None));
        assert_eq!(names.get(9), Err(ImageError::NameWithoutEnd { offset: 9 }));
        for offset in [13, u32::MAX] {
            assert_eq!(names.get(offset), Err(ImageError::NameOutOfRange { offset, size_bytes: 13 }));
        }
    }

    #[test]
    fn a_name_over_the_limit_is_left_out() {
        let mut bytes = vec![b'a'; MAX_NAME_BYTES + 1];
        bytes.extend(b"\0");
        let mut names = Names::new(&bytes);
        assert_eq!(names.get(0), Ok(None));
        assert_eq!(names.get(1).unwrap().map(str::len), Some(MAX_NAME_BYTES));
    }

    #[test]
    fn a_table_that_costs_more_than_its_size_is_refused() {
        let bytes = vec![b'a'; 2 * MAX_NAME_BYTES];
        let mut names = Names::new(&bytes);
        let asked = (0..100_000).take_while(|_| names.get(0).is_ok()).count();
        assert_eq!(asked, 65_504);
        let text = names.get(0).unwrap_err().to_string();
        assert!(
            text.contains("bytes of symbol names") && text.ends_with("more than the 268435456 that are read"),
            "{text}"
        );
    }
}
