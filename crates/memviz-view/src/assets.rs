//! The page as `npm run build` in `viewer/` makes it: three files, embedded, and nothing else is served.

/// The page's frame.
pub(crate) const INDEX: &str = include_str!("../../../viewer/dist/index.html");
/// The page's code.
pub(crate) const SCRIPT: &str = include_str!("../../../viewer/dist/app.js");
/// The page's look.
pub(crate) const STYLE: &str = include_str!("../../../viewer/dist/app.css");
