import { pretendIntel } from './pretend-intel.ts';

// The engine process on a machine whose CPU counts as Intel's.
await pretendIntel();
await import('../../runtime/worker/engine-child.ts');
