//! A good trace file with edits of three bytes each (place, value), and checksums set right.

use std::sync::LazyLock;

static GOOD: LazyLock<Vec<u8>> =
    LazyLock::new(|| uncompressed(include_bytes!("../../../tests/traces/v1.memviz")).expect("a good file"));

pub fn edited(edits: &[u8]) -> Vec<u8> {
    let mut file = GOOD.clone();
    for edit in edits.chunks_exact(3) {
        let place = usize::from(u16::from_le_bytes([edit[0], edit[1]])) % file.len();
        file[place] = edit[2];
    }
    set_checksums(&mut file);
    file
}

fn number(chunk: &[u8], at: usize) -> usize {
    u32::from_le_bytes([chunk[at], chunk[at + 1], chunk[at + 2], chunk[at + 3]]) as usize
}

/// The chunks without compression. Layout: `formats/memviz.md`.
fn uncompressed(file: &[u8]) -> Option<Vec<u8>> {
    let (mut out, mut rest) = (file[..16].to_vec(), &file[16..]);
    while rest.len() >= 24 {
        let (chunk, after) = rest.split_at_checked(24 + number(rest, 12))?;
        let raw = zstd::bulk::decompress(&chunk[24..], number(chunk, 16)).ok()?;
        let length = (raw.len() as u32).to_le_bytes();
        out.extend([&chunk[..6], &[0; 2], &chunk[8..12], &length, &length, &[0; 4], &raw].concat());
        rest = after;
    }
    set_checksums(&mut out);
    Some(out)
}

fn set_checksums(file: &mut [u8]) {
    let sum = crc32fast::hash(&file[..12]);
    file[12..16].copy_from_slice(&sum.to_le_bytes());
    let mut rest = &mut file[16..];
    while rest.len() >= 24 {
        let Some(end) = number(rest, 12).checked_add(24).filter(|end| *end <= rest.len()) else { return };
        let (chunk, after) = rest.split_at_mut(end);
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&chunk[..20]);
        hasher.update(&chunk[24..]);
        let sum = hasher.finalize();
        chunk[20..24].copy_from_slice(&sum.to_le_bytes());
        rest = after;
    }
}
