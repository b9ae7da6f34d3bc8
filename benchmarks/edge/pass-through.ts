/** The least that a Worker before an upstream can do, and what the edge is compared with. */
export const PASS_THROUGH = `export default {
  fetch: (request, env) => fetch(env.BOX + new URL(request.url).pathname, request),
};`;
