//! The one place where bytes become a word of a shell.

use crate::domain::error::{Code, Error};

/// Appends `word` as one single-quoted word of a POSIX shell. Any byte but NUL is kept as it is.
pub(crate) fn quote(word: &[u8], into: &mut Vec<u8>) -> Result<(), Error> {
    into.push(b'\'');
    for &byte in word {
        match byte {
            0 => return Err(nul()),
            b'\'' => into.extend_from_slice(br"'\''"),
            _ => into.push(byte),
        }
    }
    into.push(b'\'');
    Ok(())
}

/// A NUL cannot be part of an argument on any Unix.
pub(crate) fn nul() -> Error {
    Error::new(Code::InvalidInput, "an argument contains a NUL byte")
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;
    use std::process::{Command, Stdio};

    use super::*;

    fn quoted(word: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        quote(word, &mut out).unwrap();
        out
    }

    #[test]
    fn a_quote_is_closed_escaped_and_opened_again() {
        assert_eq!(quoted(b""), b"''");
        assert_eq!(quoted(b"a b"), b"'a b'");
        assert_eq!(quoted(b"it's"), br"'it'\''s'");
        assert!(quote(b"a\0b", &mut Vec::new()).is_err());
    }

    #[test]
    fn every_shell_gives_hostile_bytes_back() {
        let every_byte: Vec<u8> = (1..=255).collect();
        let hostile: Vec<Vec<u8>> = vec![
            every_byte,
            b"$(reboot) `id` \\ \" ' ! * ~ ; & | < > \n\n# x".to_vec(),
            b"'; exit 9; '".to_vec(),
            b"\xff\xfe\x80 \xc3\x28".to_vec(),
            b"-n".to_vec(),
            "ünï→😀\u{202e}".into(),
            b"\n".to_vec(),
        ];
        for shell in [["sh"].as_slice(), &["dash"], &["bash"], &["busybox", "sh"]] {
            for word in &hostile {
                let mut text = b"printf %s ".to_vec();
                quote(word, &mut text).unwrap();
                let ran = Command::new(shell[0])
                    .args(&shell[1..])
                    .arg("-c")
                    .arg(std::ffi::OsString::from_vec(text))
                    .stdin(Stdio::null())
                    .output();
                let Ok(ran) = ran else { continue };
                assert_eq!(&ran.stdout, word, "{shell:?}");
            }
        }
    }
}
