//! The part of an operation that defines its requests.

use http::Method;

/// An operation, ready to be called.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenApiOperation {
    /// Name of its tool.
    pub name: String,
    /// Method of its requests.
    pub method: Method,
    /// URL of its server, without a trailing slash: absolute, or relative to the location of the document. Server
    /// variables are expanded.
    pub server: String,
    /// Its path on that server, with `{name}` for path parameters.
    pub path: String,
    /// Its parameters, in the order of the document.
    pub parameters: Vec<OperationParameter>,
    /// The body of its requests.
    pub body: Option<RequestBody>,
    /// Media types of its responses for `Accept`, the preferred one first.
    pub accept: Vec<String>,
}

/// A parameter, which takes one argument of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct OperationParameter {
    /// Name of the argument. It equals that of the parameter, unless two parameters share a name.
    pub argument: String,
    /// Name in a request.
    pub name: String,
    /// Location in a request.
    pub location: ParameterLocation,
    /// Encoding of its value.
    pub encoding: ValueEncoding,
    /// True if each request has it. `null` is then written as an empty value (`name=`), otherwise omitted.
    pub required: bool,
}

/// The location of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ParameterLocation {
    /// In the path, instead of `{name}`.
    Path,
    /// In the query.
    Query,
    /// The whole query (OpenAPI 3.2).
    QueryString,
    /// A header.
    Header,
    /// In the header `Cookie`.
    Cookie,
}

/// The encoding of a value in a request.
#[derive(Debug, Clone, PartialEq)]
pub enum ValueEncoding {
    /// In a style.
    Styled(StyleOptions),
    /// As a text of this media type (`content` of a parameter).
    Content(String),
}

/// A style and its options (OpenAPI 3.1, section 4.8.12.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StyleOptions {
    /// The style.
    pub style: ParameterStyle,
    /// Write each item of an array, and each member of an object, as a separate parameter.
    pub explode: bool,
    /// Keep the reserved characters of RFC 3986 unencoded.
    pub allow_reserved: bool,
}

/// The styles of OpenAPI 3, and the additional one of OpenAPI 2 (`collectionFormat`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ParameterStyle {
    /// `a,b`: the default of paths and headers.
    Simple,
    /// `.a.b`, in a path.
    Label,
    /// `;name=a`, in a path.
    Matrix,
    /// `name=a`: the default of queries and cookies.
    Form,
    /// `name=a%20b`; `ssv`.
    SpaceDelimited,
    /// `name=a|b`; `pipes`.
    PipeDelimited,
    /// `name[member]=a`.
    DeepObject,
    /// `name=a%09b`; `tsv`, OpenAPI 2 only.
    TabDelimited,
    /// `a=1; b=2`, in a cookie (OpenAPI 3.2).
    Cookie,
}

/// The body of requests.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestBody {
    /// Media type (`Content-Type`).
    pub media_type: String,
    /// Encoding of the body.
    pub kind: BodyKind,
    /// Arguments of the body.
    pub content: BodyContent,
    /// True if each request has a body.
    pub required: bool,
}

/// The encoding of a body.
#[derive(Debug, Clone, PartialEq)]
pub enum BodyKind {
    /// JSON.
    Json,
    /// `application/x-www-form-urlencoded`. A member without a description is written as its own text, or as JSON if it
    /// is an object; an array is repeated (OpenAPI 3.1.1, section 4.8.15.1).
    Form(Vec<FormPart>),
    /// `multipart/form-data`, or another multipart type.
    Multipart(Vec<FormPart>),
    /// XML.
    Xml(Box<XmlShape>),
    /// Text, as it is.
    Text,
    /// Bytes, which the argument contains in base64.
    Bytes,
}

/// The arguments of a body.
#[derive(Debug, Clone, PartialEq)]
pub enum BodyContent {
    /// The whole body is one argument with this name.
    Argument(String),
    /// Each member of the body is an argument.
    Members {
        /// Names of arguments, with the names of their members.
        named: Vec<(String, String)>,
        /// True if arguments that belong to nothing else are members as well.
        accepts_others: bool,
    },
}

/// The description of one member of a form.
#[derive(Debug, Clone, PartialEq)]
pub struct FormPart {
    /// Name of the member.
    pub name: String,
    /// Kind of the member; for an array, of its items.
    pub kind: PartKind,
    /// Media type of the part (`Content-Type`), if the document sets one.
    pub media_type: Option<String>,
    /// Style, if the document sets one. It overrides the kind, except for files.
    pub styled: Option<StyleOptions>,
}

/// The kind of a form member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PartKind {
    /// A string, a number or a boolean, as its own text.
    Text,
    /// JSON.
    Json,
    /// A file, which the argument contains in base64.
    File,
}

/// The representation of a value in XML (OpenAPI 3.1, section 4.8.26).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct XmlShape {
    /// Name of the element or attribute, if it differs from that of the member.
    pub name: Option<String>,
    /// Namespace.
    pub namespace: Option<String>,
    /// Prefix of the name.
    pub prefix: Option<String>,
    /// True for an attribute.
    pub attribute: bool,
    /// True if the items of an array are wrapped in an element.
    pub wrapped: bool,
    /// Shape of each item of an array.
    pub items: Option<Box<XmlShape>>,
    /// Shapes of members.
    pub members: Vec<(String, XmlShape)>,
}
