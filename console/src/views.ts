/** The views that the header and the palette offer. */
export const views: readonly View[] = [
  { name: "Overview", address: "/" },
  { name: "Tail", address: "/tail", action: "subscribe" },
  { name: "Subscriptions", address: "/subscriptions", action: "admin" },
  { name: "Chain", address: "/chain", action: "admin" },
  { name: "Figures", address: "/figures", action: "admin" },
  { name: "Cluster", address: "/cluster", action: "admin" },
];

interface View {
  readonly name: string;
  readonly address: string;
  /** The right that the view needs. */
  readonly action?: string;
}
