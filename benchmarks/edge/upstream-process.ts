import { startUpstream } from '../../tests/edge/upstream.ts';

// Runs a simulated upstream in its own process, where it does not block the client that measures. Prints the upstream's
// URL.
const upstream = await startUpstream('npu-1');
setInterval(() => upstream.play({}), 1_000);
console.log(upstream.url);
