//! The page's text: the viewer with its style and script inside, and the pack before the script.

use super::PageError;
use crate::assets;

/// What the page may do: run what is in it, and nothing else. It asks nobody.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:";

pub(super) fn page(pack: &str) -> Result<String, PageError> {
    let mut page = assets::INDEX.to_owned();
    cut(&mut page, "<script", "app.js", "</script>", "script app.js")?;
    let style = format!("<style>{}</style>", escaped(assets::STYLE, "</style"));
    let at = cut(&mut page, "<link", "app.css", ">", "style app.css")?;
    page.insert_str(at, &style);
    let head = page.find("<head>").map(|at| at + "<head>".len()).ok_or(PageError::NoViewer { missing: "<head>" })?;
    page.insert_str(head, &format!("\n    <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\" />"));
    let end = page.rfind("</body>").ok_or(PageError::NoViewer { missing: "</body>" })?;
    let script = escaped(&escaped(assets::SCRIPT, "</script"), "<!--");
    let scripts = format!(
        "<script type=\"application/octet-stream\" id=\"memviz-pack\">{pack}</script>\n    \
         <script type=\"module\">{script}</script>\n  "
    );
    page.insert_str(end, &scripts);
    Ok(page)
}

/// Takes the element out that names `file`; returns where it was.
fn cut(page: &mut String, open: &str, file: &str, close: &str, missing: &'static str) -> Result<usize, PageError> {
    let mut from = 0;
    while let Some(start) = page[from..].find(open).map(|at| from + at) {
        let tag_end = page[start..].find('>').map_or(page.len(), |at| start + at + 1);
        if page[start..tag_end].contains(file) {
            let end = page[start..].find(close).map_or(page.len(), |at| start + at + close.len());
            page.replace_range(start..end, "");
            return Ok(start);
        }
        from = tag_end;
    }
    Err(PageError::NoViewer { missing })
}

/// `text` without `ending`, in whatever case: a backslash after the "<" changes nothing for JavaScript and CSS.
fn escaped(text: &str, ending: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let (mut out, mut from) = (String::with_capacity(text.len()), 0);
    for (at, _) in lower.match_indices(ending) {
        out.push_str(&text[from..=at]);
        out.push('\\');
        from = at + 1;
    }
    out.push_str(&text[from..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_needs_no_other_file() {
        let page = page("cGFjaw==").unwrap();
        assert!(!page.contains("src=\"./app.js\"") && !page.contains("href=\"./app.css\""));
        let (policy, pack, script) =
            (page.find("Content-Security-Policy"), page.find("cGFjaw=="), page.find("<script type=\"module\">"));
        assert!(policy.is_some() && policy < pack && pack < script);
        assert_eq!(page.matches("</script>").count(), 2);
    }

    #[test]
    fn nothing_ends_an_element_early() {
        assert_eq!(escaped("a</SCRIPT>b</script", "</script"), "a<\\/SCRIPT>b<\\/script");
    }
}
