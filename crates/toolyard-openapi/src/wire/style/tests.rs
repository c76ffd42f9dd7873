//! The table of the specification, and the cases that it leaves open.

use super::*;
use crate::operation::ParameterStyle::*;

/// `""` is the empty string, and stands for the column `undefined` as well.
const VALUES: [&str; 4] =
    ["null", r#""blue""#, r#"["blue","black","brown"]"#, r#"{ "R": 100, "G": 200, "B": 150 }"#];

fn style_options(style: ParameterStyle, explode: bool) -> StyleOptions {
    StyleOptions { style, explode, allow_reserved: false }
}

fn opened(value: &str) -> OpenedValue {
    OpenedValue::of("color", &Json::parse(value.to_owned()).unwrap()).unwrap()
}

/// A parameter `color`, written in the location of its style.
fn write_styled(value: &str, styled: StyleOptions, escape: PercentEscape) -> String {
    if matches!(styled.style, Simple | Label | Matrix) {
        return text("color", &opened(value), styled, escape);
    }
    let between = if styled.style == Cookie { "; " } else { "&" };
    let mut output = Vec::new();
    let mut pair = |name: &str, value: &str| output.push(format!("{name}={value}"));
    pairs("color", "color", &opened(value), styled, escape, &mut pair).unwrap();
    output.join(between)
}

/// OpenAPI 3.1.1, section 4.8.12.4, row by row: `undefined`, string, array and object; and the rows that 3.2 adds.
#[test]
fn table_of_the_specification() {
    const NA: &str = "n/a";
    #[rustfmt::skip]
    let table: [(ParameterStyle, bool, [&str; 4]); 15] = [
        (Matrix, false, [";color", ";color=blue", ";color=blue,black,brown", ";color=R,100,G,200,B,150"]),
        (Matrix, true, [";color", ";color=blue", ";color=blue;color=black;color=brown", ";R=100;G=200;B=150"]),
        (Label, false, [".", ".blue", ".blue,black,brown", ".R,100,G,200,B,150"]),
        (Label, true, [".", ".blue", ".blue.black.brown", ".R=100.G=200.B=150"]),
        (Simple, false, ["", "blue", "blue,black,brown", "R,100,G,200,B,150"]),
        (Simple, true, ["", "blue", "blue,black,brown", "R=100,G=200,B=150"]),
        (Form, false, ["color=", "color=blue", "color=blue,black,brown", "color=R,100,G,200,B,150"]),
        (Form, true, ["color=", "color=blue", "color=blue&color=black&color=brown", "R=100&G=200&B=150"]),
        (SpaceDelimited, false, [NA, NA, "color=blue%20black%20brown", "color=R%20100%20G%20200%20B%20150"]),
        (SpaceDelimited, true, [NA, NA, NA, NA]),
        (PipeDelimited, false, [NA, NA, "color=blue%7Cblack%7Cbrown", "color=R%7C100%7CG%7C200%7CB%7C150"]),
        (PipeDelimited, true, [NA, NA, NA, NA]),
        (DeepObject, true, [NA, NA, NA, "color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150"]),
        (Cookie, false, ["color=", "color=blue", "color=blue,black,brown", "color=R,100,G,200,B,150"]),
        (Cookie, true, ["color=", "color=blue", "color=blue; color=black; color=brown", "R=100; G=200; B=150"]),
    ];
    for (style, explode, row) in table {
        for (value, expect) in VALUES.into_iter().zip(row).filter(|(_, expect)| *expect != NA) {
            let escape = if style == Cookie { PercentEscape::Nothing } else { PercentEscape::Reserved };
            assert_eq!(
                write_styled(value, style_options(style, explode), escape),
                expect,
                "{style:?} {explode} {value}"
            );
        }
    }
}

#[track_caller]
fn check(style: ParameterStyle, explode: bool, value: &str, expect: &str) {
    assert_eq!(
        write_styled(value, style_options(style, explode), PercentEscape::Reserved),
        expect,
        "{style:?} {explode} {value}"
    );
}

#[test]
fn undefined_values() {
    for value in ["[]", "{}", "[null]", r#"{"a":null}"#] {
        check(Form, true, value, "color=");
        check(Matrix, true, value, ";color");
        check(Label, false, value, ".");
        check(Simple, true, value, "");
        check(DeepObject, true, value, "color=");
    }
    check(Form, true, r#""""#, "color=");
    check(Form, false, r#"["",null,"a",""]"#, "color=,a,");
    check(Form, true, r#"["","a"]"#, "color=&color=a");
    check(Form, true, r#"{"R":"","G":null,"B":1}"#, "R=&B=1");
    // RFC 6570, section 3.2.7 has no `=` before an empty value.
    check(Matrix, true, r#"["","a"]"#, ";color;color=a");
    check(Matrix, true, r#"{"R":"","B":1}"#, ";R;B=1");
    check(Label, true, r#"["a",""]"#, ".a.");
}

#[test]
fn numbers_keep_their_notation() {
    check(
        Form,
        true,
        "[1.10, 12345678901234567890123, -0, 1e400, true]",
        "color=1.10&color=12345678901234567890123&color=-0&color=1e400&color=true",
    );
    check(Simple, false, "1.0", "1.0");
}

#[test]
fn cases_that_the_specification_leaves_open() {
    // A style of arrays with another value; an explosion of a delimited style.
    check(SpaceDelimited, false, r#""a b""#, "color=a%20b");
    check(PipeDelimited, true, r#"["a","b|c"]"#, "color=a&color=b%7Cc");
    check(SpaceDelimited, true, r#"{"R":1,"G":2}"#, "R=1&G=2");
    check(TabDelimited, false, r#"["a","b"]"#, "color=a%09b");
    check(DeepObject, false, r#"{"R":1}"#, "color%5BR%5D=1");
    check(DeepObject, true, r#""blue""#, "color=blue");
    // Nested values in styles that cannot express them.
    check(Form, false, r#"["a",{"b":1}]"#, "color=a,%7B%22b%22%3A1%7D");
    check(Form, true, r#"[["a","b"]]"#, "color=%5B%22a%22%2C%22b%22%5D");
    check(Simple, true, r#"{"R":[1]}"#, "R=%5B1%5D");
    check(
        Form,
        true,
        r#"{"page":0,"sort":["a","b"],"x":[[1]],"e":[]}"#,
        "page=0&sort=a&sort=b&x=%5B%5B1%5D%5D",
    );
    // Nested values in `deepObject`.
    check(
        DeepObject,
        true,
        r#"{"a":{"b":{"c":1}},"d":"e f"}"#,
        "color%5Ba%5D%5Bb%5D%5Bc%5D=1&color%5Bd%5D=e%20f",
    );
    check(
        DeepObject,
        true,
        r#"{"a":[1,{"b":2}],"n":null,"e":{},"s":""}"#,
        "color%5Ba%5D%5B0%5D=1&color%5Ba%5D%5B1%5D%5Bb%5D=2&color%5Bs%5D=",
    );
    check(DeepObject, true, r#"["x","y"]"#, "color%5B0%5D=x&color%5B1%5D=y");
}

#[test]
fn delimiters_in_values_are_encoded() {
    check(Simple, false, r#"["a,b","c/d?#"]"#, "a%2Cb,c%2Fd%3F%23");
    check(Form, false, r#"{"k,=&":"v,=&"}"#, "color=k%2C%3D%26,v%2C%3D%26");
    check(Form, true, r#"{"k=&":"v=&+"}"#, "k%3D%26=v%3D%26%2B");
    check(DeepObject, true, r#"{"]&[":1}"#, "color%5B%5D%26%5B%5D=1");
    // OpenAPI 3.1.1, appendix C: reserved characters stay, except those with a meaning in a query.
    let reserved = |value, explode| write_styled(value, style_options(Form, explode), PercentEscape::Illegal);
    assert_eq!(reserved(r#"{"a":"x%2By","b":"x/y","c":"x^y"}"#, true), "a=x%2By&b=x/y&c=x%5Ey");
    assert_eq!(reserved(r#"["a,b","c+d&e=f#g[h]%"]"#, false), "color=a%2Cb,c%2Bd%26e%3Df%23g%5Bh%5D%25");
    assert_eq!(reserved(r#"["a,b","http://x/?y"]"#, true), "color=a,b&color=http://x/?y");
}

#[test]
fn headers_are_not_percent_encoded() {
    let plain = |value, explode| write_styled(value, style_options(Simple, explode), PercentEscape::Nothing);
    assert_eq!(plain(r#"["a b","ü/%"]"#, false), "a b,ü/%");
    assert_eq!(plain(r#"{"R":"a b"}"#, true), "R=a b");
}
