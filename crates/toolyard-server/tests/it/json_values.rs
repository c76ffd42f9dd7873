//! Arbitrary JSON as text, biased towards the details that typed parsers lose.

use proptest::prelude::*;

/// The text of any value with fewer than `deep + 10` levels.
pub(crate) fn values(deep: usize) -> BoxedStrategy<String> {
    let leaf = prop_oneof![
        2 => prop::sample::select(vec!["null", "true", "false", "{}", "[]", "[ ]", "{\n}"]).prop_map(str::to_owned),
        2 => prop::sample::select(vec![
            "1.10", "1e400", "-0", "0.0", "1E+2", "9007199254740993", "18446744073709551616",
            "123456789012345678901234567890", "-1.000000000000000000001e-400",
        ]).prop_map(str::to_owned),
        1 => "-?(0|[1-9][0-9]{0,40})(\\.[0-9]{1,9})?([eE][+-]?[0-9]{1,4})?",
        3 => strings(),
    ];
    let nested = leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            items(inner.clone()),
            // Members may repeat below the levels that the gateway parses.
            prop::collection::vec((strings(), inner), 0..5).prop_flat_map(object),
        ]
    });
    let deeper = (values_within(deep), 0..deep.max(1));
    prop_oneof![20 => nested, 1 => deeper.prop_map(|(text, depth)| {
        format!("{}{text}{}", "[{\"\":".repeat(depth / 2), "}]".repeat(depth / 2))
    })]
    .boxed()
}

fn values_within(deep: usize) -> BoxedStrategy<String> {
    if deep == 0 { Just("0".to_owned()).boxed() } else { values(0) }
}

/// White space that may stand between two tokens.
fn blank() -> &'static str {
    "[ \n\r\t]{0,2}"
}

/// The text of a string, with its quotes.
pub(crate) fn strings() -> BoxedStrategy<String> {
    let plain = any::<char>().prop_map(|character| match character {
        '"' | '\\' => format!("\\{character}"),
        '\0'..='\u{1f}' => format!("\\u{:04X}", character as u32),
        _ => character.to_string(),
    });
    let escape = prop::sample::select(vec![
        "\\n",
        "\\/",
        "\\u0041",
        "\\u2028",
        "\\ud800",
        "\\udfff\\u0061",
        "\\ud83d\\ude00",
        "\\u0000",
        "=?base64?",
    ]);
    let piece = prop_oneof![3 => plain, 1 => "[a-zA-Z0-9 $_.]{1,8}", 1 => escape.prop_map(str::to_owned)];
    prop::collection::vec(piece, 0..6).prop_map(|pieces| format!("\"{}\"", pieces.concat())).boxed()
}

fn items(inner: BoxedStrategy<String>) -> impl Strategy<Value = String> {
    let item = (blank(), inner, blank()).prop_map(|(before, item, after)| before + &item + &after);
    prop::collection::vec(item, 0..5).prop_map(|items| format!("[{}]", items.join(",")))
}

/// Unknown members with distinct names: their keys with quotes, and their values.
pub(crate) fn members(deep: usize) -> BoxedStrategy<Vec<(String, String)>> {
    let number = |members: Vec<(String, String)>| {
        let member = |(i, (key, value)): (usize, (String, String))| (format!("\"{i}.{}", &key[1..]), value);
        members.into_iter().enumerate().map(member).collect()
    };
    prop::collection::vec((strings(), values(deep)), 0..5).prop_map(number).boxed()
}

/// Inserts members at arbitrary places among others.
pub(crate) fn mixed(
    required: Vec<(&'static str, BoxedStrategy<String>)>,
    others: BoxedStrategy<Vec<(String, String)>>,
) -> BoxedStrategy<Vec<(String, String)>> {
    let required: Vec<_> =
        required.into_iter().map(|(key, value)| (Just(format!("\"{key}\"")), value)).collect();
    (required, others)
        .prop_flat_map(|(required, others)| {
            let all: Vec<_> = required.into_iter().chain(others).collect();
            Just(all).prop_shuffle()
        })
        .boxed()
}

/// The text of an object, with white space between tokens.
pub(crate) fn object(members: Vec<(String, String)>) -> BoxedStrategy<String> {
    let count = members.len();
    prop::collection::vec((blank(), blank(), blank(), blank()), count)
        .prop_map(move |blanks| {
            let member =
                |((key, value), (a, b, c, d)): (&(String, String), (String, String, String, String))| {
                    format!("{a}{key}{b}:{c}{value}{d}")
                };
            let members: Vec<_> = members.iter().zip(blanks).map(member).collect();
            format!("{{{}}}", members.join(","))
        })
        .boxed()
}

/// The text of an object with [`mixed`] members.
pub(crate) fn objects(
    known: Vec<(&'static str, BoxedStrategy<String>)>,
    others: BoxedStrategy<Vec<(String, String)>>,
) -> BoxedStrategy<String> {
    mixed(known, others).prop_flat_map(object).boxed()
}
