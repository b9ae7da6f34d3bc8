import { createStage } from './stage.ts';

/** The stage inside workerd. */
export default { fetch: createStage() };
