//! The weights of the ranking. `docs/search.md` describes the effect of each on data.

/// A field of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolField {
    /// Name and title.
    Name,
    /// Description.
    Description,
    /// Names of the parameters.
    Parameter,
    /// Descriptions of the parameters, and their possible values.
    ParameterText,
    /// Name of the server.
    Server,
}

/// Number of fields.
pub(crate) const FIELDS: usize = 5;

/// The weight of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FieldWeight {
    /// Weight of a word in the field; a word in the description has the weight 1 by default.
    pub weight: f32,
    /// Penalty for long fields, from 0 to 1.
    pub length_penalty: f32,
}

/// The weights of the ranking. Values must be finite and not negative. 0 leaves a step out, unless its documentation names
/// another value or none.
#[derive(Clone, Debug, PartialEq)]
pub struct RankingWeights {
    fields: [FieldWeight; FIELDS],
    /// Saturation of words that are repeated in a tool, as in BM25; 0 if they count once.
    pub k1: f32,
    /// Weight of a synonym, relative to the word itself.
    pub synonym: f32,
    /// Weight of an abbreviation, relative to the word it stands for, and the reverse.
    pub abbreviation: f32,
    /// Weight of a filler word; 1 leaves the step out.
    pub filler: f32,
    /// Weight of a corrected word, relative to the word itself.
    pub spelling: f32,
    /// Weight of a word that is joined or split otherwise in the tool, relative to the word itself.
    pub compound: f32,
    /// Weight of a value of the query, such as a number or a quoted text, in names of tools, parameters and servers,
    /// relative to its weight in other texts; 1 leaves the step out.
    pub value_in_name: f32,
    /// Saturation of words that are repeated in the query, as in BM25: 0 if they count once. A large value leaves the step
    /// out.
    pub k3: f32,
    /// Weight of a bigram: two words that are adjacent in the query and in the tool.
    pub bigram: f32,
    /// Bonus for a tool whose whole name occurs in the query, relative to its score.
    pub name_coverage: f32,
    /// Weight of the best clause of a query, relative to the whole query.
    pub best_clause: f32,
    /// Degree to which the scores of clauses are normalized: 0 if they are not, 1 if the best tools of all clauses have
    /// equal scores.
    pub clause_normalization: f32,
    /// Weight of the mean score of the tools of the same server.
    pub server_mean: f32,
    /// Smoothing of that mean: number of non-matching tools that are added to each server, because a few tools give
    /// little evidence.
    pub server_smoothing: f32,
}

impl Default for RankingWeights {
    fn default() -> Self {
        let weight = |weight| FieldWeight { weight, length_penalty: 0.5 };
        Self {
            fields: [2.0, 1.0, 1.0, 1.0, 1.0].map(weight),
            k1: 1.5,
            synonym: 0.3,
            abbreviation: 1.0,
            filler: 0.25,
            spelling: 1.0,
            compound: 0.5,
            value_in_name: 0.0,
            k3: 0.0,
            bigram: 0.6,
            name_coverage: 0.3,
            best_clause: 2.0,
            clause_normalization: 0.5,
            server_mean: 1.0,
            server_smoothing: 2.0,
        }
    }
}

impl RankingWeights {
    /// The weight of a field.
    pub fn field(&mut self, field: ToolField) -> &mut FieldWeight {
        &mut self.fields[field as usize]
    }

    pub(crate) fn fields(&self) -> &[FieldWeight; FIELDS] {
        &self.fields
    }
}
