/** The least that a Worker before a box can do, and what the edge is compared with. */
export const PASS_THROUGH = `export default {
  fetch: (request, env) => fetch(env.BOX + new URL(request.url).pathname, request),
};`;
