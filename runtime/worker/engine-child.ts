import { compileModel } from './compile-model.ts';
import { loadModel } from './load-model.ts';
import { type Channel, serve } from './serve.ts';

/* The engine process: everything that is native, or made by strangers, runs here. Started by `child.ts`. */
serve(
  {
    load: loadModel,
    async compile(spec, onStep) {
      const { device, maxPromptLen, form, choice } = await compileModel({ ...spec, onStep });
      return { device, maxPromptLen, form, choice };
    },
  },
  process as Channel,
);
