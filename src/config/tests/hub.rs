//! The State Hub in the configuration.

use super::*;

#[test]
fn a_hub_that_cannot_be_meant_is_refused() {
    for (file, wanted) in [
        ("state_hub: {format: plain}\n", "config.yaml:1:12: missing key 'url' in 'state_hub'"),
        (
            "state_hub: {url: localhost}\n",
            "config.yaml:1:18: 'url' must begin with http:// or https:// and name a host",
        ),
        (
            "state_hub: {url: 'https://ops:s3cr3t@hub/events'}\n",
            "config.yaml:1:18: 'url' must not have a user or password in it; a token comes by 'token_env' or 'token_file'",
        ),
        (
            "state_hub: {url: 'http://hub/', token_env: 'A=b'}\n",
            "config.yaml:1:44: 'token_env' is the name of a variable",
        ),
        (
            "state_hub: {url: 'http://hub/', token_env: A, token_file: b}\n",
            "config.yaml:1:59: 'token_file' and 'token_env' are both given",
        ),
    ] {
        assert_eq!(Home::new(file).refusal(), wanted, "{file}");
    }
}

#[test]
fn a_token_is_read_by_the_name_of_its_variable_and_printed_nowhere() {
    let home = Home::new("state_hub: {url: 'http://127.0.0.1/', token_env: HUB}\n");
    let load = |pairs: &[(&str, &str)]| {
        let home = ("HOME", home.dir.path().to_str().unwrap());
        let environment = Environment::from_pairs(pairs.iter().copied().chain([home]));
        Config::load(&Overrides::default(), &environment).unwrap()
    };
    let config = load(&[("HUB", "s3cr3t")]);
    assert_eq!(config.hub_token.as_ref().unwrap().reveal(), "s3cr3t");
    assert!(!format!("{config:?}").contains("s3cr3t"));
    for pairs in [&[][..], &[("HUB", "")], &[("STATE_HUB_TOKEN", "x")]] {
        assert_eq!(load(pairs).hub_token, None);
    }
    let home = Home::new("state_hub: {url: 'http://hub/', token_file: ~/hub.token}\n");
    let hub = home.load().unwrap().state_hub.unwrap();
    assert_eq!(hub.token_file, Some(home.path("hub.token")));
}
