//! Finds the series that a query asks for.

/// How the names of metrics begin that a query may ask for.
const KNOWN: [&str; 4] = ["lanekeeper_", "devotel_", "rabbitmq_", "up{"];

/// Every selector in a query, each a query of its own: `a_total{b="c"}`.
pub fn selectors(query: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut place = 0;
    while place < query.len() {
        let rest = &query[place..];
        let word = rest.find(|c: char| !is_of_name(c)).unwrap_or(rest.len());
        if KNOWN.iter().any(|start| rest.starts_with(start)) {
            let end = word + length_of_labels(&rest[word..]);
            found.push(&rest[..end]);
            place += end;
        } else {
            place += word.max(1);
        }
    }
    found
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The length of the braces that `rest` begins with, if it does. Braces in quotes do not count.
fn length_of_labels(rest: &str) -> usize {
    if !rest.starts_with('{') {
        return 0;
    }
    let mut quoted = false;
    for (place, c) in rest.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '}' if !quoted => return place + 1,
            _ => {}
        }
    }
    panic!("braces that do not end: {rest}");
}

#[test]
fn selectors_are_found_with_their_labels() {
    let query = r#"max by (lane) (label_replace(rabbitmq_a{queue=~"x{2}"}, "lane", "$1")) > 0
        unless sum(rate(lanekeeper_b_total[5m])) / up{job="lanekeeper"} and absent(devotel_c)"#;
    let wanted = [
        r#"rabbitmq_a{queue=~"x{2}"}"#,
        "lanekeeper_b_total",
        r#"up{job="lanekeeper"}"#,
        "devotel_c",
    ];
    assert_eq!(selectors(query), wanted);
}
