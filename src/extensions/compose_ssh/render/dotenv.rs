//! Environment files (`.env`, `env_file`, `label_file`), read as compose reads them.

use super::interpolate::{Variables, substitute_lenient};

/// Limit to which the values of one file may grow, in bytes: `A=$A$A` doubles on every line.
const MAX_TOTAL: usize = 1024 * 1024;

/// Entry: a name, and a value unless the line holds the name alone (passed through from outside).
pub(super) type Entry = (String, Option<String>);

/// Reads `text`. Values without single quotes may refer to earlier entries and to `outer`, which wins.
///
/// # Errors
/// The 1-based line and a sentence; never a value, since these files hold secrets.
pub(super) fn parse(text: &str, outer: &Variables) -> Result<Vec<Entry>, (usize, String)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
    let mut reader = Reader { rest: &text, line: 1 };
    let mut known = outer.clone();
    let mut entries = Vec::new();
    let mut grown = 0_usize;
    while let Some(name) = reader.name()? {
        let value = match reader.value()? {
            None => None,
            Some(Written { text, literal: true }) => Some(text),
            Some(Written { text, literal: false }) => {
                let value =
                    substitute_lenient(&text, &known).map_err(|message| (reader.line, message))?;
                Some(value)
            }
        };
        if let Some(value) = &value {
            grown += value.len();
            if grown > MAX_TOTAL {
                return Err((
                    reader.line,
                    "the values together grow beyond 1 MiB; use shorter ones".to_owned(),
                ));
            }
            if !outer.contains_key(&name) {
                known.insert(name.clone(), value.clone());
            }
        }
        entries.push((name, value));
    }
    Ok(entries)
}

/// Reads `text` as `format: raw`: one `NAME=value` a line, nothing interpreted.
pub(super) fn parse_raw(text: &str) -> Vec<Entry> {
    let lines =
        text.lines().map(str::trim_start).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| match line.split_once('=') {
            Some((name, value)) => (name.trim().to_owned(), Some(value.to_owned())),
            None => (line.trim().to_owned(), None),
        })
        .collect()
}

struct Written {
    text: String,
    /// In single quotes: no variables.
    literal: bool,
}

struct Reader<'t> {
    rest: &'t str,
    line: usize,
}

impl Reader<'_> {
    fn advance(&mut self, bytes: usize) {
        self.line += self.rest[..bytes].matches('\n').count();
        self.rest = &self.rest[bytes..];
    }

    fn skip_blank_and_comments(&mut self) {
        loop {
            let blank = self.rest.len() - self.rest.trim_start().len();
            self.advance(blank);
            if !self.rest.starts_with('#') {
                return;
            }
            self.advance(self.rest.find('\n').unwrap_or(self.rest.len()));
        }
    }

    /// The next name; leaves `rest` at its `=`, `:` or line end.
    fn name(&mut self) -> Result<Option<String>, (usize, String)> {
        self.skip_blank_and_comments();
        if self.rest.is_empty() {
            return Ok(None);
        }
        if let Some(after) =
            self.rest.strip_prefix("export").filter(|after| after.starts_with([' ', '\t']))
        {
            self.rest = after.trim_start_matches([' ', '\t']);
        }
        let end = self.rest.find(['=', ':', '\n']).unwrap_or(self.rest.len());
        let name = self.rest[..end].trim();
        let legal = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '[' | ']');
        if name.is_empty() || !name.chars().all(legal) {
            return Err((
                self.line,
                "this is not NAME=value; start a comment with `#`, quote values of several lines"
                    .to_owned(),
            ));
        }
        let name = name.to_owned();
        self.rest = &self.rest[end..];
        Ok(Some(name))
    }

    fn value(&mut self) -> Result<Option<Written>, (usize, String)> {
        let Some(after) = self.rest.strip_prefix(['=', ':']) else { return Ok(None) };
        self.rest = after.trim_start_matches([' ', '\t']);
        match self.rest.chars().next() {
            Some(quote @ ('"' | '\'')) => self.quoted(quote).map(Some),
            _ => Ok(Some(self.bare())),
        }
    }

    fn bare(&mut self) -> Written {
        let end = self.rest.find('\n').unwrap_or(self.rest.len());
        let line = &self.rest[..end];
        let line = if line.starts_with('#') { "" } else { line };
        let text = line.split(" #").next().unwrap_or_default().trim().to_owned();
        self.rest = &self.rest[end..];
        Written { text, literal: false }
    }

    fn quoted(&mut self, quote: char) -> Result<Written, (usize, String)> {
        let mut text = String::new();
        let mut escaped = false;
        for (i, c) in self.rest.char_indices().skip(1) {
            if escaped {
                escaped = false;
                push_escape(&mut text, c, quote);
            } else if c == '\\' {
                escaped = true;
            } else if c == quote {
                self.advance(i + 1);
                self.rest_of_line()?;
                return Ok(Written { text, literal: quote == '\'' });
            } else {
                text.push(c);
            }
        }
        Err((self.line, format!("the {quote} that opens here is never closed")))
    }

    fn rest_of_line(&mut self) -> Result<(), (usize, String)> {
        let end = self.rest.find('\n').unwrap_or(self.rest.len());
        let tail = self.rest[..end].trim();
        if !tail.is_empty() && !tail.starts_with('#') {
            return Err((
                self.line,
                "text follows the closing quote; remove it or quote the whole value".to_owned(),
            ));
        }
        self.rest = &self.rest[end..];
        Ok(())
    }
}

fn push_escape(text: &mut String, c: char, quote: char) {
    match (quote, c) {
        ('"', 'n') => text.push('\n'),
        ('"', 'r') => text.push('\r'),
        ('"', 't') => text.push('\t'),
        // A protected dollar stays protected until variables are filled in.
        ('"', '$') => text.push_str("$$"),
        ('"', '"' | '\\') | ('\'', '\'') => text.push(c),
        _ => {
            text.push('\\');
            text.push(c);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Vec<(String, String)> {
        let outer: Variables = [("OUT".to_owned(), "o".to_owned())].into();
        parse(text, &outer)
            .unwrap()
            .into_iter()
            .map(|(k, v)| (k, v.unwrap_or_else(|| "<none>".into())))
            .collect()
    }

    #[test]
    fn lines_mean_what_they_mean_to_compose() {
        let cases = [
            ("A=b", "b"),
            ("A=b # c", "b"),
            ("A=b#c", "b#c"),
            ("A = b ", "b"),
            ("A: b", "b"),
            ("export A=b", "b"),
            ("A=", ""),
            ("A=''", ""),
            ("A='$OUT'", "$OUT"),
            ("A=$OUT", "o"),
            ("A=\"x\\n${OUT}\"", "x\no"),
            ("A=\"\\$OUT\"", "$OUT"),
            ("A=\"a\nb\"", "a\nb"),
            ("A=\"a\" # c", "a"),
            ("A=pa$1ss", "pa$1ss"),
            ("A=${NOPE:-d}", "d"),
            ("A", "<none>"),
            ("\u{feff}A=b\r\n", "b"),
            ("# c\n\n  A=b", "b"),
            ("A=it's", "it's"),
            ("A=#x", ""),
            ("A='it\\'s'", "it's"),
        ];
        for (text, want) in cases {
            assert_eq!(read(text), [("A".to_owned(), want.to_owned())], "{text}");
        }
    }

    #[test]
    fn later_lines_see_earlier_ones_and_the_outside_wins() {
        let got = read("A=1\nB=${A}2\nOUT=mine\nC=$OUT");
        assert_eq!(got[1].1, "12");
        assert_eq!(got[3].1, "o");
    }

    #[test]
    fn errors_have_a_line_and_no_value() {
        for (text, line) in [
            ("A=1\nnot a name=secret", 2),
            ("A='secret", 1),
            ("A=1\n\nB='x' secret", 3),
            ("=secret", 1),
        ] {
            let (at, message) = parse(text, &Variables::new()).expect_err(text);
            assert_eq!(at, line, "{text}");
            assert!(!message.contains("secret"), "{message}");
        }
    }

    #[test]
    fn values_that_double_are_stopped() {
        let text = format!("A=xxxxxxxxxxxxxxxx\n{}", "A=$A$A\n".repeat(100));
        assert!(parse(&text, &Variables::new()).unwrap_err().1.contains("MiB"));
    }

    #[test]
    fn raw_files_are_taken_as_they_are() {
        assert_eq!(
            parse_raw("# c\nA='b' # c\nB"),
            [("A".into(), Some("'b' # c".into())), ("B".into(), None)]
        );
    }

    proptest! {
        #[test]
        fn never_panics(text in "[A=:'\"\\\\# \n$\\{\\}xä]{0,60}") {
            let _ = parse(&text, &Variables::new());
            let _ = parse_raw(&text);
        }
    }
}
