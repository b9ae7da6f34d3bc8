/**
 * Maximum number of pixels of an image: more than phone cameras usually have. Such an image takes 120 MB once decoded.
 */
export const MOST_PIXELS = 40_000_000;
