/** Script of a Worker that only forwards requests to an upstream: the baseline for the edge. */
export const PASS_THROUGH = `export default {
  fetch: (request, env) => fetch(env.BOX + new URL(request.url).pathname, request),
};`;
