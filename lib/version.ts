/** Of the whole interface and of this package (decision-service.md, "Versioning"). */
export const VERSION = '0.5.0';
