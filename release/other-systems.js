import { existsSync, readdirSync, rmSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

/*
 * Runs after an install. onnxruntime-node brings its libraries for Linux, macOS and Windows, 290 MB; those of the other
 * systems are removed. This is JavaScript because it also runs in the installed package, with any Node.
 */

const own = dirname(dirname(fileURLToPath(import.meta.url)));
const { npm_lifecycle_event, npm_config_global, npm_config_os } = process.env;
const system = npm_config_os || process.platform;
// A project that depends on this package may need the libraries for programs that it builds for other systems.
const dependency = own.split(sep).includes('node_modules') && npm_config_global !== 'true';

if (!(dependency && npm_lifecycle_event === 'postinstall')) {
  // Beside this package's own modules, or beside this package.
  for (const modules of [join(own, 'node_modules'), dirname(own)]) {
    const bin = join(modules, 'onnxruntime-node', 'bin');
    for (const version of existsSync(bin) ? readdirSync(bin).filter((name) => name.startsWith('napi-v')) : []) {
      const systems = readdirSync(join(bin, version));
      if (!systems.includes(system)) continue;
      for (const other of systems.filter((name) => name !== system)) {
        rmSync(join(bin, version, other), { recursive: true, force: true });
      }
    }
  }
}
