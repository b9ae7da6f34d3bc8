#!/usr/bin/env node
// This file has no static imports: they load before its first line runs, so an old Node would fail on them before it
// reaches this check. Use only syntax that old versions can parse. The minimum version is `engines.node` in
// package.json.
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < 22 || (major === 22 && minor < 13)) {
  console.error(
    `assay needs Node 22.13 or newer; this is Node ${process.versions.node}. Install a newer one, such as Node 24, ` +
      'from https://nodejs.org or with a version manager (nvm install 24), then run the command again.',
  );
  process.exit(2);
}

import('node:module')
  .then(({ enableCompileCache }) => {
    // Comes before any other import: with the compile cache, the program loads in a third of the time from its second
    // start on.
    enableCompileCache();
    return import('./cli/main.ts');
  })
  .then(({ main }) => main());

export {};
