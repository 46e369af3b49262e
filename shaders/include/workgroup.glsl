// A dispatch may be divided into parts, each of which begins at another workgroup in y and z. The block of push constants ends
// with it, because gl_WorkGroupID begins at 0 in every part. (vkCmdDispatchBase would change that, but not with every driver.)

// Returns the number of this workgroup in the whole dispatch.
ivec3 workgroup_id() {
    return ivec3(gl_WorkGroupID) + ivec3(0, first_workgroup_y, first_workgroup_z);
}
