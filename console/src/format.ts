/** Numbers, times and sizes for people. */

const numbers = new Intl.NumberFormat();
const times = new Intl.DateTimeFormat(undefined, { dateStyle: 'short', timeStyle: 'medium' });

export function count(number: number, noun: string): string {
  return `${numbers.format(number)} ${noun}${number === 1 ? '' : 's'}`;
}

export function number(value: number): string {
  return numbers.format(value);
}

export function dateTime(text: string | undefined): string {
  const time = text === undefined ? Number.NaN : Date.parse(text);
  return Number.isNaN(time) ? '' : times.format(time);
}

const UNITS: [string, number][] = [
  ['d', 86_400],
  ['h', 3_600],
  ['min', 60],
];

/** Time since a moment: `3 min`. */
export function since(text: string, now: number = Date.now()): string {
  const seconds = Math.max(0, Math.round((now - Date.parse(text)) / 1000));
  for (const [unit, length] of UNITS) {
    if (seconds >= length) {
      return `${Math.floor(seconds / length)} ${unit}`;
    }
  }
  return Number.isNaN(seconds) ? '' : `${seconds} s`;
}

export function bytes(value: number | undefined): string {
  if (value === undefined) {
    return '';
  }
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let amount = value;
  let unit = 0;
  while (amount >= 1024 && unit < units.length - 1) {
    amount /= 1024;
    unit += 1;
  }
  return `${amount >= 100 || unit === 0 ? Math.round(amount) : amount.toFixed(1)} ${units[unit]}`;
}

export function milliseconds(value: number | undefined | null): string {
  if (value === undefined || value === null) {
    return '';
  }
  if (value >= 10_000) {
    return `${(value / 1000).toFixed(1)} s`;
  }
  return value >= 100 ? `${Math.round(value)} ms` : `${Number(value.toPrecision(2))} ms`;
}

/** Tokens of JSON by its size, as the gateway estimates them. */
export function tokens(text: string): number {
  return Math.ceil((new TextEncoder().encode(text).length * 5) / 22);
}

/** Control characters, and characters that change the direction or the look of what surrounds them. */
const INVISIBLE =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

/** Makes characters visible that a hostile text could hide or reorder text with. */
export function visible(text: string): string {
  return text.replace(INVISIBLE, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return `⟨U+${code.toString(16).toUpperCase().padStart(4, '0')}⟩`;
  });
}
