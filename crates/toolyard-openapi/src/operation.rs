//! One operation of a described service, as far as its requests go.

use http::Method;

/// An operation, ready to be called.
#[derive(Debug, Clone, PartialEq)]
pub struct Operation {
    /// What its tool is called.
    pub name: String,
    /// The method of its requests.
    pub method: Method,
    /// Where its server is, without a slash at the end: absolute, or relative to where the document is from. Its
    /// variables have their defaults.
    pub server: String,
    /// Its path on that server, with `{name}` where a parameter of the path goes.
    pub path: String,
    /// Its parameters, in the order of the document.
    pub parameters: Vec<Parameter>,
    /// What its requests have for a body.
    pub body: Option<Body>,
    /// What its responses may be, for `Accept`: media types, the one it had rather first.
    pub accept: Vec<String>,
}

/// A parameter, which takes one argument of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    /// The name of the argument. It is that of the parameter, unless two parameters share it.
    pub argument: String,
    /// The name in a request.
    pub name: String,
    /// Where it goes.
    pub location: Location,
    /// How its value is written.
    pub form: Form,
    /// Whether each request has it. `null` is written as nothing then (`name=`), and is left out otherwise.
    pub required: bool,
}

/// Where a parameter goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Location {
    /// In the place of `{name}` in the path.
    Path,
    /// Into the query.
    Query,
    /// It is the whole query (OpenAPI 3.2).
    QueryString,
    /// Into a header of its own.
    Header,
    /// Into the header `Cookie`.
    Cookie,
}

/// How a value is written into a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Form {
    /// In a style.
    Styled(Styled),
    /// As a text of this media type (`content` of a parameter).
    Content(String),
}

/// A style, and what changes it (OpenAPI 3.1, section 4.8.12.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Styled {
    /// The style.
    pub style: Style,
    /// Whether each item of an array, and each member of an object, is a parameter of its own.
    pub explode: bool,
    /// Whether the reserved characters of RFC 3986 stay as they are.
    pub allow_reserved: bool,
}

/// The styles of OpenAPI 3, and what only OpenAPI 2 has (`collectionFormat`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Style {
    /// `a,b`: the one of paths and headers.
    Simple,
    /// `.a.b`, in a path.
    Label,
    /// `;name=a`, in a path.
    Matrix,
    /// `name=a`: the one of queries and cookies.
    Form,
    /// `name=a%20b`; `ssv`.
    SpaceDelimited,
    /// `name=a|b`; `pipes`.
    PipeDelimited,
    /// `name[member]=a`.
    DeepObject,
    /// `name=a%09b`; `tsv`, of OpenAPI 2 only.
    TabDelimited,
    /// `a=1; b=2`, in a cookie (OpenAPI 3.2).
    Cookie,
}

/// The body of requests.
#[derive(Debug, Clone, PartialEq)]
pub struct Body {
    /// What it says it is (`Content-Type`).
    pub media_type: String,
    /// How it is written.
    pub kind: BodyKind,
    /// Which arguments it is made of.
    pub content: Content,
    /// Whether each request has one.
    pub required: bool,
}

/// How a body is written.
#[derive(Debug, Clone, PartialEq)]
pub enum BodyKind {
    /// JSON.
    Json,
    /// `application/x-www-form-urlencoded`. A member that nothing is known of is its own text, or JSON where it is an
    /// object; an array is repeated (OpenAPI 3.1.1, section 4.8.15.1).
    Form(Vec<Part>),
    /// `multipart/form-data`, or another multipart type.
    Multipart(Vec<Part>),
    /// XML.
    Xml(Box<XmlShape>),
    /// Text, as it is.
    Text,
    /// Bytes, which an argument has in base64.
    Bytes,
}

/// Which arguments a body is made of.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// One argument of this name is the body.
    Argument(String),
    /// Each of these is a member of it.
    Members {
        /// The arguments, and the names of the members that they are.
        named: Vec<(String, String)>,
        /// Whether arguments that belong to nothing else are members of it as well.
        open: bool,
    },
}

/// What is known of one member of a form.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// The member.
    pub name: String,
    /// What it is, where it is alone; of an array, what each item is.
    pub kind: PartKind,
    /// What its part says it is (`Content-Type`), where the document says so.
    pub media_type: Option<String>,
    /// How it is written, where the document says so: what it is does not count then, unless it is a file.
    pub styled: Option<Styled>,
}

/// What a member of a form is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PartKind {
    /// A string, a number or a boolean, as its own text.
    Text,
    /// JSON.
    Json,
    /// A file, which an argument has in base64.
    File,
}

/// How a value is written in XML (OpenAPI 3.1, section 4.8.26).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct XmlShape {
    /// The name of the element or attribute, where it is not that of the member.
    pub name: Option<String>,
    /// The namespace.
    pub namespace: Option<String>,
    /// The prefix of its name.
    pub prefix: Option<String>,
    /// Whether it is an attribute.
    pub attribute: bool,
    /// Whether the items of an array stand in an element of their own.
    pub wrapped: bool,
    /// The shape of each item of an array.
    pub items: Option<Box<XmlShape>>,
    /// The shapes of members.
    pub members: Vec<(String, XmlShape)>,
}
