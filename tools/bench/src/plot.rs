//! Plots as SVG: bars and lines, nothing else.

use std::fmt::Write as _;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 340.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 56.0;
const BOTTOM: f64 = 44.0;

/// Distinct also without colours: the bars of a group have the order of the legend.
const COLOURS: [&str; 6] = ["#7f7f7f", "#009e73", "#56b4e9", "#0072b2", "#e69f00", "#d55e00"];

/// Bars that stand side by side, one for each name of the legend.
pub(super) struct BarGroup {
    pub label: String,
    pub values: Vec<f64>,
}

/// Draws groups of bars. `names` is the legend.
pub(super) fn bars(title: &str, names: &[&str], groups: &[BarGroup]) -> String {
    let most = groups.iter().flat_map(|group| &group.values).copied().fold(0.0, f64::max);
    let scale = PlotScale::new(most);
    let mut plot = Plot::new(title);
    plot.rows(&scale);
    plot.legend(names);
    let group_width = (WIDTH - LEFT - RIGHT) / groups.len().max(1) as f64;
    for (number, group) in groups.iter().enumerate() {
        let left = LEFT + number as f64 * group_width;
        let width = group_width * 0.8 / names.len().max(1) as f64;
        for (bar, value) in group.values.iter().enumerate() {
            let (x, y) = (left + group_width * 0.1 + bar as f64 * width, scale.y(*value));
            let colour = COLOURS[bar % COLOURS.len()];
            plot.add(format!(
                r#"<rect x="{x:.1}" y="{y:.1}" width="{:.1}" height="{:.1}" fill="{colour}"/>"#,
                width - 2.0,
                HEIGHT - BOTTOM - y,
            ));
            plot.text(x + width / 2.0 - 1.0, y - 4.0, "middle", 10, &format!("{value:.0}"));
        }
        plot.text(left + group_width / 2.0, HEIGHT - BOTTOM + 18.0, "middle", 12, &group.label);
    }
    plot.end()
}

/// Draws one line through points. Both axes begin at zero.
pub(super) fn line(title: &str, below: &str, points: &[(f64, f64)]) -> String {
    let most = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).fold(0.0, f64::max);
    let (scale, width) = (PlotScale::new(most(|point| point.1)), most(|point| point.0));
    let mut plot = Plot::new(title);
    plot.rows(&scale);
    let x = |value: f64| LEFT + value / width.max(1.0) * (WIDTH - LEFT - RIGHT);
    let places: Vec<_> =
        points.iter().map(|(at, value)| format!("{:.1},{:.1}", x(*at), scale.y(*value))).collect();
    plot.add(format!(
        r#"<polyline points="{}" fill="none" stroke="{}" stroke-width="2"/>"#,
        places.join(" "),
        COLOURS[3],
    ));
    for at in PlotScale::new(width).ticks().filter(|at| *at <= width) {
        plot.text(x(at), HEIGHT - BOTTOM + 16.0, "middle", 11, &format!("{at}"));
    }
    plot.text(LEFT + (WIDTH - LEFT - RIGHT) / 2.0, HEIGHT - 8.0, "middle", 12, below);
    plot.end()
}

/// A vertical axis from zero to a round number.
struct PlotScale {
    step: f64,
    most: f64,
}

impl PlotScale {
    /// Steps of 1, 2 or 5 times a power of ten, at most six of them.
    fn new(most: f64) -> PlotScale {
        let power = 10_f64.powf((most.max(1e-9) / 5.0).log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
        let step = step.into_iter().find(|step| step * 5.0 >= most).unwrap_or(power * 10.0);
        PlotScale { step, most: (most / step).ceil().max(1.0) * step }
    }

    fn ticks(&self) -> impl Iterator<Item = f64> {
        let step = self.step;
        (0..=(self.most / step).round() as u32).map(move |number| f64::from(number) * step)
    }

    fn y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - value / self.most * (HEIGHT - TOP - BOTTOM)
    }
}

/// The elements of a plot, one a line.
struct Plot(String);

impl Plot {
    fn new(title: &str) -> Plot {
        let mut plot = Plot(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\">\n"
        ));
        plot.add(format!(r##"<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>"##));
        plot.text(LEFT, 20.0, "start", 14, title);
        plot
    }

    fn add(&mut self, element: String) {
        // Writing to a string cannot fail.
        let _written = writeln!(self.0, "{element}");
    }

    fn text(&mut self, x: f64, y: f64, anchor: &str, size: u32, text: &str) {
        let text = text.replace('&', "&amp;").replace('<', "&lt;");
        self.add(format!(
            r##"<text x="{x:.1}" y="{y:.1}" font-size="{size}" text-anchor="{anchor}" fill="#222222">{text}</text>"##
        ));
    }

    fn rows(&mut self, scale: &PlotScale) {
        for tick in scale.ticks() {
            let y = scale.y(tick);
            self.add(format!(
                r##"<line x1="{LEFT}" y1="{y:.1}" x2="{:.1}" y2="{y:.1}" stroke="#dddddd"/>"##,
                WIDTH - RIGHT
            ));
            self.text(LEFT - 6.0, y + 4.0, "end", 11, &format!("{tick}"));
        }
    }

    fn legend(&mut self, names: &[&str]) {
        for (number, name) in names.iter().enumerate() {
            let x = LEFT + number as f64 * 110.0;
            let colour = COLOURS[number % COLOURS.len()];
            self.add(format!(r#"<rect x="{x:.1}" y="30" width="11" height="11" fill="{colour}"/>"#));
            self.text(x + 16.0, 40.0, "start", 12, name);
        }
    }

    fn end(mut self) -> String {
        self.add("</svg>".to_owned());
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axis_ends_at_a_round_number() {
        for (most, expected, step) in [(66.0, 80.0, 20.0), (4.9, 5.0, 1.0), (1e6, 1e6, 2e5)] {
            let scale = PlotScale::new(most);
            assert!((scale.most - expected).abs() <= expected * 1e-6, "{most}: {}", scale.most);
            assert!((scale.step - step).abs() <= step * 1e-6, "{most}: {}", scale.step);
        }
    }

    #[test]
    fn bar_is_as_high_as_its_value() {
        let plot =
            bars("us", &["a", "b"], &[BarGroup { label: "16 < 64".to_owned(), values: vec![5.0, 2.5] }]);
        // 240 of the picture's 340 units are the height of the axis.
        for part in [r#"height="240.0""#, r#"height="120.0""#, "16 &lt; 64", ">a</text>", "</svg>"] {
            assert!(plot.contains(part), "{part} is missing in\n{plot}");
        }
    }

    #[test]
    fn line_passes_its_points() {
        let plot = line("MiB", "calls", &[(0.0, 0.0), (100.0, 5.0)]);
        assert!(plot.contains(r#"points="60.0,296.0 740.0,56.0""#), "{plot}");
    }
}
