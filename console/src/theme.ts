/** The colours: those of the system, or the ones that the reader has chosen. */
export type Theme = 'system' | 'light' | 'dark';

const STORED = 'toolyard.theme';

export function currentTheme(): Theme {
  const stored = localStorage.getItem(STORED);
  return stored === 'light' || stored === 'dark' ? stored : 'system';
}

export function setTheme(theme: Theme): void {
  if (theme === 'system') {
    localStorage.removeItem(STORED);
  } else {
    localStorage.setItem(STORED, theme);
  }
  applyTheme();
}

export function applyTheme(): void {
  document.documentElement.dataset['theme'] = currentTheme();
}
