import { defineConfig } from '@hey-api/openapi-ts';

/** Generates types only; sending, retries and errors are in src/client.ts. */
export default defineConfig({
  input: '../.work/typescript.json',
  output: { path: 'src/generated', clean: true },
  plugins: ['@hey-api/typescript'],
});
