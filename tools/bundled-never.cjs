// In the bundle, this stands for packages that Fastify requires only when a program uses its schemas or its `inject`, which the broker does not.
module.exports = () => {
  throw new Error("the bundle does not contain this package");
};
