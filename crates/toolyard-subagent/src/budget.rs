//! The budget of one agent: tokens, and money if the prices are known.

use toolyard_core::access::CallPrice;
use toolyard_core::tokens;

use crate::model::{ChatMessage, ChatReply, ChatRequest, TokenUsage};

/// Tokens that a price is for.
const PRICED_TOKENS: u128 = 1_000_000;

/// Limits of the consumption of one agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetLimits {
    /// Maximum number of tokens, of all requests and replies together.
    pub tokens: u64,
    /// Maximum cost.
    pub cost: Option<CallPrice>,
    /// Price of a million tokens of requests. The cost that an endpoint reports takes precedence.
    pub input_price: CallPrice,
    /// Price of a million tokens of replies.
    pub output_price: CallPrice,
}

/// The budget of a running agent.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    limits: BudgetLimits,
    tokens: u64,
    /// Millionths of the unit of prices.
    cost: u64,
}

/// The budget is used up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BudgetError {
    /// No tokens are left.
    #[error("its budget of {0} tokens is used up")]
    Tokens(u64),
    /// No money is left.
    #[error("its budget of {} is used up", display(*.0))]
    Cost(CallPrice),
}

impl Budget {
    pub(crate) const fn new(limits: BudgetLimits) -> Self {
        Self { limits, tokens: 0, cost: 0 }
    }

    /// Returns the tokens that were consumed.
    pub(crate) const fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Counts a request and its reply. If the endpoint does not report the consumption, it is estimated.
    pub(crate) fn spend(&mut self, request: ChatRequest<'_>, reply: &ChatReply) {
        let usage = reply.usage.unwrap_or_else(|| estimate(request, reply));
        self.tokens = self.tokens.saturating_add(usage.input).saturating_add(usage.output);
        self.cost = self.cost.saturating_add(self.cost_of(usage));
    }

    /// Checks the budget before a request.
    pub(crate) fn check(&self) -> Result<(), BudgetError> {
        if self.tokens >= self.limits.tokens {
            return Err(BudgetError::Tokens(self.limits.tokens));
        }
        match self.limits.cost.filter(|limit| self.cost >= limit.0) {
            Some(limit) => Err(BudgetError::Cost(limit)),
            None => Ok(()),
        }
    }

    fn cost_of(&self, usage: TokenUsage) -> u64 {
        if let Some(cost) = usage.cost.filter(|cost| cost.is_finite() && *cost >= 0.0) {
            // The text has the precision of prices, and prices are far below the bound of the type.
            return format!("{cost:.6}").parse().map_or(u64::MAX, |CallPrice(cost)| cost);
        }
        let price = |tokens: u64, price: CallPrice| u128::from(tokens) * u128::from(price.0);
        let sum = price(usage.input, self.limits.input_price) + price(usage.output, self.limits.output_price);
        u64::try_from(sum.div_ceil(PRICED_TOKENS)).unwrap_or(u64::MAX)
    }
}

fn estimate(request: ChatRequest<'_>, reply: &ChatReply) -> TokenUsage {
    let bytes_of = |message: &ChatMessage| match message {
        ChatMessage::System(text) | ChatMessage::User(text) | ChatMessage::ToolResult { text, .. } => {
            text.len()
        }
        ChatMessage::Model { text, requests } => {
            text.len()
                + requests.iter().map(|request| request.name.len() + request.arguments.len()).sum::<usize>()
        }
    };
    let tools = request.tools.iter().map(|tool| tool.description.len() + tool.parameters.to_string().len());
    let input = request.messages.iter().map(bytes_of).sum::<usize>() + tools.sum::<usize>();
    let output =
        reply.text.len() + reply.requests.iter().map(|request| request.arguments.len()).sum::<usize>();
    let tokens = |bytes| u64::try_from(tokens::estimate(bytes)).unwrap_or(u64::MAX);
    TokenUsage { input: tokens(input), output: tokens(output), cost: None }
}

fn display(CallPrice(millionths): CallPrice) -> String {
    let text = format!("{}.{:06}", millionths / 1_000_000, millionths % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(tokens: u64, cost: &str) -> BudgetLimits {
        let price = |text: &str| text.parse().unwrap();
        BudgetLimits { tokens, cost: cost.parse().ok(), input_price: price("3"), output_price: price("15") }
    }

    #[test]
    fn budget_ends_with_tokens_or_money() {
        let check = |limits: BudgetLimits, usage: Option<TokenUsage>, expected: &str| {
            let mut budget = Budget::new(limits);
            let messages = [ChatMessage::User("x".repeat(44))];
            let request = ChatRequest { messages: &messages, tools: &[] };
            budget.check().unwrap();
            budget.spend(request, &ChatReply { text: "y".repeat(22), usage, ..ChatReply::default() });
            let left = budget.check().map_or_else(|error| error.to_string(), |()| "left".to_owned());
            assert_eq!(format!("{} {} {left}", budget.tokens, budget.cost), expected);
        };
        let usage = |input, output, cost| Some(TokenUsage { input, output, cost });
        check(limits(20, "1"), usage(10, 5, None), "15 105 left");
        check(limits(15, "1"), usage(10, 5, None), "15 105 its budget of 15 tokens is used up");
        check(limits(20, "0.000105"), usage(10, 5, None), "15 105 its budget of 0.000105 is used up");
        // The endpoint knows better.
        check(limits(20, "0.5"), usage(10, 5, Some(0.5)), "15 500000 its budget of 0.5 is used up");
        check(limits(20, ""), usage(10, 5, Some(f64::NAN)), "15 105 left");
        // An estimate: 44 bytes are 10 tokens, 22 are 5.
        check(limits(20, ""), None, "15 105 left");
        check(
            limits(u64::MAX, "1"),
            usage(u64::MAX, 1, None),
            &format!("{0} {0} its budget of {0} tokens is used up", u64::MAX),
        );
    }
}
