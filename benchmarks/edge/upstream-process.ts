import { startUpstream } from '../../tests/edge/upstream.ts';

// Runs a simulated upstream in a process of its own, so that it takes no processor time from the measuring client.
// Prints its address.
const upstream = await startUpstream('npu-1');
setInterval(() => upstream.play({}), 1_000);
console.log(upstream.url);
