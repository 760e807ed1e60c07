/** Placeholder for the site's base path in the built files. The broker replaces it with the real path, which is known only at run time. */
export const basePlace = "/stele-docs-base/";
