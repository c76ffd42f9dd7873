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
    /// Descriptions of the parameters.
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

/// The weights of the ranking. Values must be finite and not negative; 0 disables a step.
#[derive(Clone, Debug, PartialEq)]
pub struct RankingWeights {
    fields: [FieldWeight; FIELDS],
    /// Saturation of repeated words.
    pub k1: f32,
    /// Weight of a synonym, relative to the word itself.
    pub synonym: f32,
    /// Weight of an abbreviation, relative to the word it stands for, and the reverse.
    pub abbreviation: f32,
    /// Weight of a filler word.
    pub filler: f32,
    /// Weight of a corrected word, relative to the word itself.
    pub spelling: f32,
    /// Weight of a word that is joined or split otherwise in the tool, relative to the word itself.
    pub compound: f32,
    /// Saturation of repeated words in the query: 0 if they count once.
    pub repetition: f32,
    /// Weight of two words that are adjacent in the query and in the tool.
    pub pair: f32,
    /// Bonus for a tool whose whole name occurs in the query, relative to its score.
    pub name_coverage: f32,
    /// Weight of the best clause of a query, relative to the whole query.
    pub clause: f32,
    /// Degree to which the scores of clauses are equalized: 0 if they are not, 1 if the best tools of all clauses have
    /// equal scores.
    pub evenness: f32,
    /// Weight of the other tools of the same server.
    pub siblings: f32,
    /// Number of non-matching tools that are added to each server, because a few tools give little evidence.
    pub absent_siblings: f32,
}

impl Default for RankingWeights {
    fn default() -> Self {
        let weight = |weight, loss| FieldWeight { weight, length_penalty: loss };
        Self {
            fields: [
                weight(3.0, 0.5),
                weight(1.0, 0.75),
                weight(1.0, 0.75),
                weight(0.5, 0.5),
                weight(1.0, 0.5),
            ],
            k1: 1.5,
            synonym: 0.3,
            abbreviation: 0.6,
            filler: 0.5,
            spelling: 0.6,
            compound: 1.0,
            repetition: 1.0,
            pair: 0.3,
            name_coverage: 0.3,
            clause: 1.0,
            evenness: 0.5,
            siblings: 0.5,
            absent_siblings: 2.0,
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
