// SPDX-License-Identifier: Apache-2.0
// esbuild takes style sheets as modules.
declare module "*.css";
