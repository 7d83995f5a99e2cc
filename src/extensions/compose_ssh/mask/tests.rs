use serde_json::json;

use super::*;

fn masker(environment: &Value, variables: &[(&str, &str)]) -> Masker {
    let project = json!({
        "services": {"web": {
            "image": "postgres:15",
            "environment": environment,
            "build": {"context": "/w", "args": {"NPM_TOKEN": "npm_0123"}},
            "labels": {"traefik.basicauth.users": "admin:$$apr1$$x", "sandboxer.id": "one-sandbox"},
        }},
        "volumes": {"pgdata": {}},
        "secrets": {"cert": {"content": "line-one\nline-two\n"}},
    });
    let variables =
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Masker::of_file(&format!("# Written by sandboxer\n{project:#}\n"), &variables).unwrap()
}

#[test]
fn a_value_behind_its_name_is_masked_however_short_it_is() {
    let masker = masker(
        &json!({"DEBUG": "1", "PG_PASSWORD": "a b", "POSTGRES_DB": "postgres", "EMPTY": "", "QUOTE": "it's"}),
        &[("PIN", "42")],
    );
    for (said, masked) in [
        ("podman create -e DEBUG=1 -e X", "podman create -e DEBUG=*** -e X"),
        ("podman create -e PG_PASSWORD=a b web", "podman create -e PG_PASSWORD=*** web"),
        ("--env=PG_PASSWORD='a b'", "--env=PG_PASSWORD='***'"),
        (
            "['podman', '-e', 'DEBUG=1', '-e', 'POSTGRES_DB=postgres']",
            "['podman', '-e', 'DEBUG=***', '-e', 'POSTGRES_DB=***']",
        ),
        ("{\"DEBUG\": \"1\", \"n\": 1}", "{\"DEBUG\": \"***\", \"n\": 1}"),
        ("{'DEBUG': '1'}", "{'DEBUG': '***'}"),
        ("{\"DEBUG\":\"1\",\"n\":1}", "{\"DEBUG\":\"***\",\"n\":1}"),
        ("DEBUG: 1 of 2", "DEBUG: *** of 2"),
        ("--build-arg NPM_TOKEN=npm_0123 .", "--build-arg NPM_TOKEN=*** ."),
        ("QUOTE=it'\"'\"'s", "QUOTE=***"),
        ("'QUOTE=it\\'s'", "'QUOTE=***'"),
        // Cut within the value, or one that nobody knows: its name says enough.
        ("podman create -e PG_PASSWORD=a", "podman create -e PG_PASSWORD=***"),
        ("-e OTHER=nobody knows", "-e OTHER=*** knows"),
        ("SOME_API_KEY=zz; PIN=9", "SOME_API_KEY=*** PIN=***"),
        (
            "{\"client_secret\": \"x\", \"id\": \"y\"}",
            "{\"client_secret\": \"***\", \"id\": \"y\"}",
        ),
        (
            "connect to redis://me:pw@db:6379/0 and http://db/@x",
            "connect to redis://me:***@db:6379/0 and http://db/@x",
        ),
        ("redis-server --requirepass pw --port 1", "redis-server --requirepass *** --port 1"),
        ("-l traefik.basicauth.users=admin:$apr1$x", "-l traefik.basicauth.users=***"),
    ] {
        assert_eq!(masker.text(said), masked, "{said}");
    }
}

#[test]
fn a_long_value_or_a_secret_is_masked_anywhere_and_a_name_is_not() {
    let masker = masker(
        &json!({
            "GREETING": "good morning", "MODE": "dev", "DB": "postgres", "DB_PASSWORD": "pgdata", "TOKEN": "q7!",
            "AUTH_ENABLED": "true", "TOKEN_URL": "x$$y$$z", "PEM_KEY": "-----BEGIN-----\nabc=\n-----END-----",
        }),
        &[("ADMIN", "hunter2"), ("COMPOSE_PROJECT_NAME", "sbx-one")],
    );
    for (said, masked) in [
        ("he said good morning", "he said ***"),
        ("in mode dev", "in mode dev"),
        ("Pulling postgres:15 for pgdata", "Pulling postgres:15 for pgdata"),
        ("-e DB_PASSWORD=pgdata", "-e DB_PASSWORD=***"),
        ("xq7!x", "x***x"),
        ("it is true", "it is true"),
        ("x$y$z and x$$y$$z", "*** and ***"),
        ("sh -c echo hunter2", "sh -c echo ***"),
        ("network sbx-one_default of one-sandbox", "network sbx-one_default of one-sandbox"),
        ("-e PEM_KEY=-----BEGIN-----\nabc=\n-----END----- web", "-e PEM_KEY=*** web"),
        ("\"-----BEGIN-----\\nabc=\\n-----END-----\"", "\"***\""),
        // Line by line, as they come.
        ("-e PEM_KEY=-----BEGIN-----", "-e PEM_KEY=***"),
        ("abc=", "***"),
        ("cat: line-two", "cat: ***"),
    ] {
        assert_eq!(masker.text(said), masked, "{said}");
    }
}

#[test]
fn a_value_that_was_cut_at_an_end_of_the_text_is_masked() {
    let masker = masker(&json!({"GREETING": "good morning"}), &[]);
    assert_eq!(masker.cut("orning and good morning and good mor"), "*** and *** and ***");
    assert_eq!(masker.cut("ing and goo"), "ing and goo", "so little says nothing");
    assert_eq!(
        masker.text("and good mor"),
        "and good mor",
        "a text that is whole ends with no part of a value"
    );
    assert_eq!(masker.cut("good mor"), "***");
}

#[test]
fn names_of_secrets_are_told_from_others() {
    for name in [
        "DB_PASSWORD",
        "dbPassword",
        "API_KEY",
        "apikey",
        "PGPASSWORD",
        "GH_TOKEN",
        "AUTH",
        "AWS_SECRET_ACCESS_KEY",
        "MYSQL_PWD",
        "SSH_KEY",
        "x-client-secret",
    ] {
        assert!(is_secret(name), "{name}");
    }
    for name in ["AUTHOR", "KEYBOARD", "PUBLIC_KEY", "PATH", "COMPASS", "MONKEY", "DEBUG"] {
        assert!(!is_secret(name), "{name}");
    }
}

#[test]
fn what_is_no_rendered_file_masks_nothing_and_says_so() {
    for text in ["", "services: {}", "# c\n", "# c\n[]", "# c\n{"] {
        assert!(Masker::of_file(text, &BTreeMap::new()).is_none(), "{text}");
    }
    assert_eq!(Masker::default().text("ünï→ a=b: c"), "ünï→ a=b: c");
}

proptest::proptest! {
    #[test]
    fn no_text_stops_it_and_no_secret_gets_through(before in ".{0,20}", after in ".{0,20}", value in "[a-z$'\"\\\\ =:\n]{6,12}") {
        let masker = masker(&json!({"A_SECRET": value.replace('$', "$$")}), &[]);
        let said = format!("{before}{value}{after}");
        let masked = masker.text(&said);
        proptest::prop_assert!(!masked.contains(&value) || value.trim().is_empty() || said.contains("postgres"), "{masked:?}");
        masker.cut(&said);
    }
}
