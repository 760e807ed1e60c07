// In the bundle, this stands for modules that a package requires only for something that the broker does not do: Fastify for schemas and `inject`, undici for
// bodies that are form data.
module.exports = () => {
  throw new Error("the bundle does not contain this package");
};
