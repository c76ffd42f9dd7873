//! What counts how much. `docs/search.md` says what each of these is worth, on data.

/// A part of a tool that words stand in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// Its name, and its title.
    Name,
    /// What it does.
    Description,
    /// The names of its parameters.
    Parameter,
    /// What is said of its parameters.
    ParameterText,
    /// The name of its server.
    Server,
}

/// How many fields there are.
pub(crate) const FIELDS: usize = 5;

/// How much a field counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weight {
    /// What a word in it counts, beside one in the description.
    pub weight: f32,
    /// How much of that is lost where the field is long, from 0 to 1.
    pub loss: f32,
}

/// How tools are ranked. The values are to be finite and not negative; 0 leaves a step out.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking {
    fields: [Weight; FIELDS],
    /// How soon repeating a word stops to count.
    pub k1: f32,
    /// What a synonym counts, beside the word itself.
    pub synonym: f32,
    /// What an abbreviation counts, beside the word that it stands for, and the other way round.
    pub abbreviation: f32,
    /// What a word counts that is said around what is asked for.
    pub faint: f32,
    /// What a word counts each time that the query says it again.
    pub repeat: f32,
    /// What two words count that stand side by side in the query and in the tool.
    pub pair: f32,
    /// What a tool gains of which the query says the whole name, as a part of its score.
    pub cover: f32,
    /// What the best clause of a query counts, beside the whole query.
    pub clause: f32,
    /// How far clauses are made to count alike, from 0 to 1.
    pub evenness: f32,
    /// What the other tools of the same server count.
    pub siblings: f32,
    /// How many tools that do not fit are added to each server: of few tools not much can be said.
    pub absent_siblings: f32,
}

impl Default for Ranking {
    fn default() -> Self {
        let weight = |weight, loss| Weight { weight, loss };
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
            faint: 0.5,
            repeat: 0.0,
            pair: 0.3,
            cover: 0.3,
            clause: 1.0,
            evenness: 0.5,
            siblings: 0.5,
            absent_siblings: 2.0,
        }
    }
}

impl Ranking {
    /// How much a field counts.
    pub fn field(&mut self, field: Field) -> &mut Weight {
        &mut self.fields[field as usize]
    }

    pub(crate) fn fields(&self) -> &[Weight; FIELDS] {
        &self.fields
    }
}
