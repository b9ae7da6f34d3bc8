// Runs Assay inside a Worker of your own: `npx wrangler dev --config examples/worker/wrangler.toml`
import { createApp, hashSecret, listedKeys } from 'assay';
import { keywordBackend } from '../keyword-backend.ts';

interface Env {
  /** The API key that callers send; a secret, set with `wrangler secret put API_KEY`. */
  API_KEY: string;
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const key = { name: 'me', sha256: await hashSecret(env.API_KEY), models: ['*'], scopes: [] };
    const app = createApp({ backend: keywordBackend, apis: ['decisions'], keys: listedKeys([key]) });
    return app.fetch(request);
  },
};
