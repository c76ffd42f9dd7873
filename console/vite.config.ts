import { readFileSync } from 'node:fs';
import { defineConfig, type Plugin } from 'vite';

/** The packages whose code is part of the console. */
const BUNDLED = ['openapi-fetch', 'preact', 'uplot'];

/** Adds the licences of the bundled packages, which require that. */
function licences(): Plugin {
  const licence = (name: string) => readFileSync(`node_modules/${name}/LICENSE`, 'utf8').trim();
  return {
    name: 'licences',
    generateBundle() {
      const source = BUNDLED.map((name) => `${name}\n\n${licence(name)}\n`).join(`\n${'-'.repeat(72)}\n\n`);
      this.emitFile({ type: 'asset', fileName: 'licences.txt', source });
    },
  };
}

export default defineConfig({
  plugins: [licences()],
  // Relative addresses, so that a proxy can serve the gateway below a path.
  base: './',
  // The JSX of Preact, without its plugin, which is for development only.
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    target: 'es2022',
    // A data URL would be one more source in the policy of contents.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  server: { proxy: { '/api': 'http://127.0.0.1:8080' } },
});
