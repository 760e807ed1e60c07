/** What the header and the palette name. */
export const views = [
  { name: "Overview", address: "/" },
  { name: "Tail", address: "/tail" },
  { name: "Subscriptions", address: "/subscriptions" },
  { name: "Chain", address: "/chain" },
  { name: "Figures", address: "/figures" },
  { name: "Cluster", address: "/cluster" },
] as const;
