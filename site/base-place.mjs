/** Placeholder for the base path of the site in the built files. The broker replaces it with the real path, which it knows only when it starts. */
export const basePlace = "/stele-docs-base/";
