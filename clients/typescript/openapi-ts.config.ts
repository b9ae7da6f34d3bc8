import { defineConfig } from '@hey-api/openapi-ts';

/** Generates only types. `src/` has handwritten code for requests, retries and errors. */
export default defineConfig({
  input: '../.work/typescript.json',
  output: { path: 'src/generated', clean: true },
  plugins: ['@hey-api/typescript'],
});
