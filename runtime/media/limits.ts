/** Most pixels of an image: above what phone cameras usually make; 120 MB as it is decoded. */
export const MOST_PIXELS = 40_000_000;
