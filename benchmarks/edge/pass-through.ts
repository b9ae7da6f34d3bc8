/** The least that a Worker before an upstream can do: the baseline of the edge. */
export const PASS_THROUGH = `export default {
  fetch: (request, env) => fetch(env.BOX + new URL(request.url).pathname, request),
};`;
