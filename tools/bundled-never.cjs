// Replaces, in the bundle, modules that a package needs only for features that the broker does not use: Fastify for schemas and `inject`, undici for bodies
// that are form data.
module.exports = () => {
  throw new Error("the bundle does not contain this package");
};
