import { render } from 'preact';
import { App } from './app';
import { applyTheme } from './theme';
import './style.css';

applyTheme();
const root = document.getElementById('app');
if (root !== null) {
  render(<App />, root);
}
