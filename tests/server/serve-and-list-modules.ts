import { registerHooks } from 'node:module';

/* Starts and stops the server with a scripted engine, and prints the packages that were imported on the way. */

const packages = new Set<string>();
registerHooks({
  resolve(specifier, context, next) {
    if (!/^(\.|\/|node:|file:)/u.test(specifier)) packages.add(specifier);
    return next(specifier, context);
  },
});
const [home] = process.argv.slice(2);
const [{ pino }, { serverConfig }, { serve }, { composeScripted }] = await Promise.all([
  import('pino'),
  import('../../adapters/node/config.ts'),
  import('../../adapters/node/serve.ts'),
  import('../scripted-backend/compose.ts'),
]);
const config = serverConfig({ port: '0', ...(home ? { home } : {}) }, {});
const effects = { log: pino({ level: 'silent' }), say: () => {}, terminal: false, compose: composeScripted() };
const serving = await serve(config, effects);
await serving.stop();
process.stdout.write([...packages].join('\n'));
