"""The numbered equations of the papers, one function each, in plain numpy.

Nothing here is fast, and nothing here is used while a robot runs. The functions are what networks, compiled paths and
analytic Jacobians are tested against: one shape at a time, arrays in, arrays out, in the notation of the paper.
Millimetres and Pa; networks are callables from array to array.

Paper 000, *Correspondence-Free, Function-Based Sim-to-Real Learning for Deformable Surface Control*:

=======  ==================================================  ==========================================
Eq.      What                                                Function
=======  ==================================================  ==========================================
1        B-spline surface B(u, v, S^c)                       `surface.surface_points`
2        RBF warp Phi(p)                                     `warp.warp`
3        coefficients gamma = N_rbf(S^c)                     `warp.warp_coefficients`
4        corrected point Phi_gamma(B(u, v, S^c))             `warp.corrected_points`
5        the same from the actuation, N_s2r                  `warp.corrected_points_of_actuation`
6        confidence-weighted Chamfer distance D~             `losses.weighted_chamfer`
7        its sum over the frames L_cd                        `losses.chamfer_loss`
8        regularisation of the confidence L_cr               `losses.confidence_regularization`
9        compatibility of normals L_nc                       `losses.normal_compatibility`
10       compatibility conditions of a warp                  `losses.compatibility_conditions`
11       geometric regularisation L_gr                       `losses.geometric_regularization`
12       total loss L_total                                  `losses.total_loss`
13       D~ of known correspondences                         `losses.marker_distance`
14       simulated shape S^c = N_fk(a)                       `inverse_kinematics.simulated_control_points`
15       objective D(S*(a), S^t)                             `inverse_kinematics.objective`
16       its gradient dD/da                                  `inverse_kinematics.objective_gradient`
17       dp*/da                                              `jacobian.actuation_jacobian`
18       Hausdorff distance                                  `measures.hausdorff_distance`
19       Chamfer distance                                    `measures.chamfer_distance`
20       loss of direct learning                             `measures.direct_loss`
21       normal error eta                                    `measures.normal_errors`
23       dN_s2r/dQ                                           `jacobian.by_centers`
24       dp*/dq_i                                            `jacobian.by_center`
25       gradient of a kernel by its center                  `jacobian.kernel_by_center`
26       dN_s2r/dB = dp*/dp                                  `jacobian.by_point`
27       gradient of a kernel by the point                   `jacobian.kernel_by_point`
29       dp*/dgamma                                          `jacobian.by_coefficients`
30       its components                                      `jacobian.by_coefficient`
31       dB/dS^c                                             `jacobian.surface_by_control_points`
=======  ==================================================  ==========================================

The paper prints no Eq. 22 and no Eq. 28.

Paper 001, *Efficient Jacobian-Based Inverse Kinematics with Sim-to-Real Transfer of Soft Robots by Learning*:

=======  ==================================================  ==========================================
Eq.      What                                                Function
=======  ==================================================  ==========================================
1        objective O(p_i, c) of a waypoint                   `tip.objective`
2        its gradient dO/dc                                  `tip.objective_gradient`
3        Jacobian by central differences                     `tip.difference_jacobian`
4        Jacobian of the real tip, diff(N_s2r) J^s           `tip.transferred_jacobian`
5        gradient at the real tip                            `tip.real_objective_gradient`
6        gradient through N_fk, N_J and N_s2r                `tip.learned_objective_gradient`
=======  ==================================================  ==========================================
"""
